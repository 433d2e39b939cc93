"""A fixed ring of real processes over torch.distributed, for the training loop.

``python gloo_members.py RENDEZVOUS SIZE RANK OUT SPEEDS LOST`` trains a small net and saves its state and the losses of settled steps. At
each step in LOST (comma-separated), every member drops its sums once.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from commensal import training as loop
from commensal.ring import Lost, Place, Replica
from commensal.ring.alone import Alone


class Fixed(Alone):
    """``size`` members, sums by gloo; loses the steps it is told to, once each, after some of their sums have arrived."""

    def __init__(self, rank: int, speeds: tuple[float, ...], lost: set[int]) -> None:
        super().__init__(None, 1e9)
        self._place = Place(rank=rank, size=len(speeds), speeds=speeds)
        self._lost = lost
        self._step = 0

    def memory(self, words: int) -> Tensor:
        self._words = torch.zeros(words)
        return self._words

    def begin(self, replica: Replica) -> Place:
        self._step = replica.closed + 1
        return self._place

    def reduce(self, low: int, high: int) -> None:
        dist.all_reduce(self._words[low:high])

    def wait(self) -> None:
        if self._step in self._lost:
            self._lost.remove(self._step)
            raise Lost


class Shifted(torch.utils.data.Dataset[tuple[Tensor, int]]):
    """70 random images, moved at random at each use."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(7)
        self.images = torch.randn(70, 1, 8, 8, generator=generator)
        self.labels = torch.randint(0, 3, (70,), generator=generator).tolist()

    def __len__(self) -> int:
        return 70

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        top, left = torch.randint(0, 3, (2,)).tolist()
        return self.images[index, :, top : top + 6, left : left + 6], self.labels[index]


def model() -> nn.Module:
    """Batch normalisation, dropout, and a parameter that no sample uses."""
    torch.manual_seed(3)
    layers = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.3), nn.Flatten(), nn.Linear(64, 3))
    layers.register_parameter("unused", nn.Parameter(torch.ones(3)))
    return layers


def train(ring: Alone, out: Path, steps: int = 12) -> None:
    """Train and save what came out."""
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01)
    loop._ring = lambda folder, seconds, batches: ring  # the members' only difference
    training = loop.Training(net, optimizer, Shifted(), batch_size=32, micro_batch=6, steps=steps, clip_norm=1.0)
    losses: list[float] = []
    training.on_step(lambda step: losses.append(step.loss))
    for images, labels in training:
        training.step(functional.cross_entropy(net(images), labels))
    save_file({**net.state_dict(), "losses": torch.tensor(losses)}, out)


def main() -> None:
    """One member."""
    rendezvous, size, rank, out, speeds, lost = sys.argv[1:]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{rendezvous}", world_size=int(size), rank=int(rank), timeout=timedelta(seconds=60))
    steps = {int(step) for step in lost.split(",") if step}
    train(Fixed(int(rank), tuple(float(speed) for speed in speeds.split(",")), steps), Path(out))


if __name__ == "__main__":
    main()
