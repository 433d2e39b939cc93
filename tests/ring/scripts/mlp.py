"""A small training with dropout: endless unless STEPS is set; writes its parameters to FINAL when it finishes."""

from __future__ import annotations

import os

import torch
from torch import nn

import commensal

torch.set_num_threads(1)
torch.manual_seed(0)
inputs = torch.randn(512, 16)
targets = (inputs.sum(1) > 0).long()
dataset = torch.utils.data.TensorDataset(inputs, targets)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
training = commensal.Training(
    model, optimizer, dataset, batch_size=64, micro_batch=8, steps=int(os.environ.get("STEPS", "1000000")), seed=3
)
criterion = nn.CrossEntropyLoss()
for x, y in training:
    training.step(criterion(model(x), y))
if training.lead and "FINAL" in os.environ:
    torch.save(dict(model.state_dict()), os.environ["FINAL"])
