"""What both digits trainings share: the images, and the accuracy on those held out."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

import commensal

EVERY = 100
"""Steps between two measurements of accuracy."""


def load(*, held_out: bool) -> tuple[Tensor, Tensor]:
    """Images (n, 1, 8, 8) in [0, 1] and labels (n,): one fifth of the 1,797 is held out, chosen once and for all."""
    rows = torch.from_numpy(np.loadtxt(digits_file(), delimiter=","))
    images, labels = rows[:, :64].float().reshape(-1, 1, 8, 8) / 16, rows[:, 64].long()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    cut = len(order) // 5
    chosen = order[:cut] if held_out else order[cut:]
    return images[chosen], labels[chosen]


def digits_file() -> Path:
    """The data that scikit-learn ships; importing it instead would cost each member a second of its hole. Raises ModuleNotFoundError."""
    spec = importlib.util.find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("scikit-learn, which ships the digits, is not installed: pip install 'commensal[demo]'", name="sklearn")
    return Path(spec.origin).parent / "datasets" / "data" / "digits.csv.gz"


def watch(training: commensal.Training, held_out: tuple[Tensor, Tensor]) -> None:
    """Measure the accuracy on the held-out images every EVERY settled steps, on one member."""
    images, labels = held_out

    def accuracy(model: nn.Module) -> dict[str, float]:
        return {"accuracy": (model(images).argmax(1) == labels).float().mean().item()}

    def measure(settled: commensal.StepInfo) -> None:
        if settled.lead and settled.step % EVERY == 0:
            training.evaluate(accuracy)

    training.on_step(measure)
