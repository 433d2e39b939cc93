"""What both digits trainings share: the images, and the accuracy on those held out."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

import commensal

EVERY = 100
"""Steps between two measurements of accuracy."""


def load(*, held_out: bool) -> tuple[Tensor, Tensor]:
    """Images (n, 1, 8, 8) in [0, 1] and labels (n,): one fifth of the 1,797 is held out, chosen once and for all."""
    digits = load_digits()
    images = torch.from_numpy(digits.images).float().unsqueeze(1) / 16
    labels = torch.from_numpy(digits.target).long()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    cut = len(order) // 5
    chosen = order[:cut] if held_out else order[cut:]
    return images[chosen], labels[chosen]


def watch(training: commensal.Training, held_out: tuple[Tensor, Tensor]) -> None:
    """Measure the accuracy on the held-out images every EVERY settled steps, on one member."""
    images, labels = held_out

    def accuracy(model: nn.Module) -> dict[str, float]:
        return {"accuracy": (model(images).argmax(1) == labels).float().mean().item()}

    def measure(settled: commensal.StepInfo) -> None:
        if settled.lead and settled.step % EVERY == 0:
            training.evaluate(accuracy)

    training.on_step(measure)
