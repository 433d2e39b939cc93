"""A small training to test with: 70 samples, batch normalisation, dropout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import TensorDataset

from commensal.training import Training

torch.set_num_threads(1)  # for the same bits in each process

INPUTS = torch.randn(70, 5, generator=torch.Generator().manual_seed(1))
TARGETS = torch.randint(0, 3, (70,), generator=torch.Generator().manual_seed(2))
DATASET = TensorDataset(INPUTS, TARGETS)


def linear() -> nn.Linear:
    torch.manual_seed(5)
    return nn.Linear(5, 3)


def net() -> nn.Sequential:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))


def make(model: nn.Module, folder: Path | None = None, rate: float = 0.1, **options: Any) -> Training:  # noqa: ANN401
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    return Training(model, optimizer, DATASET, **{"batch_size": 32, "micro_batch": 8, "folder": folder, **options})


def run(training: Training, model: nn.Module) -> list[Tensor]:
    """Train to the end; the inputs that were used."""
    used = []
    for inputs, targets in training:
        used.append(inputs)
        training.step(functional.cross_entropy(model(inputs), targets))
    return used


def adam_net(folder: Path, steps: int) -> tuple[Training, nn.Module]:
    """With state of every kind: moments, statistics, a schedule that keeps a Counter."""
    folder.mkdir(exist_ok=True)
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4], gamma=0.5)
    options = {"batch_size": 32, "micro_batch": 8, "steps": steps, "scheduler": scheduler, "folder": folder}
    return Training(model, optimizer, DATASET, **options), model
