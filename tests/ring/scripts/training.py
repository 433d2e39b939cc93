"""A training for tests: MODEL (mlp with dropout, convnet with batch normalisation and random crops), STEPS, and what a test asks of it.

BATCH is the global batch or a range, RULE what becomes of the learning rate in it. DETERMINISTIC=0 takes plain float sums. GATE names a
file with a step number, which the ring does not pass until the number grows. FINAL is where the parameters go at the end, SEEN where the
indices of fetched samples go. FAULTS, "member:what" separated by blanks, are carried out by :mod:`faults`.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import faults
import repeated
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

import commensal

IMAGES = 480


class Crops(torch.utils.data.Dataset[tuple[Tensor, int]]):
    """Random images, each cut out differently at each use."""

    def __init__(self, flat: bool) -> None:
        generator = torch.Generator().manual_seed(1)
        self.images = torch.randn(IMAGES, 1, 10, 10, generator=generator)
        self.labels = (self.images.mean((1, 2, 3)) > 0).long().tolist()
        self.flat = flat

    def __len__(self) -> int:
        return IMAGES

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        if "SEEN" in os.environ:
            with open(os.environ["SEEN"], "a") as seen:
                seen.write(f"{index}\n")
        top, left = torch.randint(0, 3, (2,)).tolist()
        image = self.images[index, :, top : top + 8, left : left + 8]
        return image.flatten() if self.flat else image, self.labels[index]


def build(name: str) -> nn.Module:
    """The model to train."""
    torch.manual_seed(0)
    if name == "mlp":
        return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 2))
    first, second = (nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU()), (nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(128, 2))


def wait_at_gate(settled: commensal.StepInfo) -> None:
    """Hold the ring at the step that the test allows."""
    gate = os.environ.get("GATE")
    while gate and settled.lead and settled.step >= int(Path(gate).read_text()):
        time.sleep(0.005)


torch.set_num_threads(1)
repeated.install()
batch = tuple(int(size) for size in os.environ.get("BATCH", "64").split(","))
name = os.environ.get("MODEL", "mlp")
model = build(name)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
training = commensal.Training(
    model,
    optimizer,
    Crops(name == "mlp"),
    batch_size=batch if len(batch) == 2 else batch[0],
    lr_rule=os.environ.get("RULE", "linear"),
    micro_batch=8,
    steps=int(os.environ.get("STEPS", "1000000")),
    seed=3,
    clip_norm=5.0,
    deterministic=os.environ.get("DETERMINISTIC") != "0",
    scheduler=torch.optim.lr_scheduler.StepLR(optimizer, 100, 0.5),
)
training.on_step(wait_at_gate)
faults.install(training)
criterion = nn.CrossEntropyLoss()
for x, y in training:
    training.step(criterion(model(x), y))
if training.lead and "FINAL" in os.environ:
    save_file(model.state_dict(), os.environ["FINAL"])
