"""A training whose state takes a while to be moved: 64 MiB, and hardly anything to compute."""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn

import commensal


class Wide(nn.Module):
    """One long vector."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(8 << 20))

    def forward(self, x: Tensor) -> Tensor:
        """The mean weight, once for each sample."""
        return self.weights.mean() + x[:, 0]


torch.set_num_threads(1)
model = Wide()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
dataset = torch.utils.data.TensorDataset(torch.randn(64, 1))
for (x,) in (training := commensal.Training(model, optimizer, dataset, batch_size=4, micro_batch=4, steps=10_000_000)):
    time.sleep(0.1)
    training.step(model(x).square().mean())
