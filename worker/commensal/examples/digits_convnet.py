"""A convnet with batch normalisation and random crops on scikit-learn's handwritten digits.

python digits_convnet.py --steps 500        # alone, on a laptop
commensal submit FILE.toml                  # the same file, in the holes of a cluster
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn
from torch.nn import functional

import commensal
from commensal.examples import digits


class RandomShift(torch.utils.data.Dataset[tuple[Tensor, int]]):
    """Each image moved by up to one pixel each way, differently at each use."""

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        self.padded = functional.pad(images, (1, 1, 1, 1))
        self.labels = labels.tolist()

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        top, left = torch.randint(0, 3, (2,)).tolist()
        return self.padded[index, :, top : top + 8, left : left + 8], self.labels[index]


def convnet(width: int = 24) -> nn.Sequential:
    """8 x 8 images -> 10 logits."""
    return nn.Sequential(
        *(nn.Conv2d(1, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
        *(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(width, 2 * width, 3, padding=1, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.AdaptiveAvgPool2d(1)),
        *(nn.Flatten(), nn.Linear(2 * width, 10)),
    )


def main() -> None:
    """Train until --steps are done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--batch", type=int, nargs=2, default=(256, 256), metavar=("SMALLEST", "LARGEST"), help="elastic if they differ")
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    held_out = digits.load(held_out=True)
    model = convnet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05 * given.batch[0] / 256, momentum=0.9, weight_decay=1e-4)
    dataset = RandomShift(*digits.load(held_out=False))
    training = commensal.Training(model, optimizer, dataset, batch_size=tuple(given.batch), micro_batch=32, steps=given.steps)
    digits.watch(training, held_out)
    for images, labels in training:
        training.step(functional.cross_entropy(model(images), labels))


if __name__ == "__main__":
    main()
