"""A training with much state and little to compute: argv[1] is the size of its checkpoint in MiB, parameters and momentum (64)."""

from __future__ import annotations

import sys
import time

import torch
from torch import Tensor, nn

import commensal


class Wide(nn.Module):
    """One long vector."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(words))

    def forward(self, x: Tensor) -> Tensor:
        """The mean weight, once for each sample."""
        return self.weights.mean() + x[:, 0]


torch.set_num_threads(1)
model = Wide(int(float(sys.argv[1] if len(sys.argv) > 1 else "64") * 2**20 / 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
dataset = torch.utils.data.TensorDataset(torch.randn(64, 1))
training = commensal.Training(model, optimizer, dataset, batch_size=4, micro_batch=4, steps=10_000_000)
for (x,) in training:
    time.sleep(0.1)
    training.step(model(x).square().mean())
