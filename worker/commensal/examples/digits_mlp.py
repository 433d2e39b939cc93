"""A multilayer perceptron with dropout on scikit-learn's handwritten digits.

python digits_mlp.py --steps 500        # alone, on a laptop
commensal submit FILE.toml              # the same file, in the holes of a cluster
"""

from __future__ import annotations

import argparse

import torch
from torch import nn
from torch.nn import functional

import commensal
from commensal.examples import digits


def perceptron(width: int = 512) -> nn.Sequential:
    """8 x 8 images -> 10 logits."""
    return nn.Sequential(
        *(nn.Flatten(), nn.Linear(64, width), nn.ReLU(), nn.Dropout(0.3)),
        *(nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.3)),
        nn.Linear(width, 10),
    )


def main() -> None:
    """Train until --steps are done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500)
    steps = parser.parse_args().steps
    torch.set_num_threads(1)
    torch.manual_seed(0)
    held_out = digits.load(held_out=True)
    model = perceptron()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    dataset = torch.utils.data.TensorDataset(*digits.load(held_out=False))
    training = commensal.Training(model, optimizer, dataset, batch_size=256, micro_batch=32, steps=steps)
    digits.watch(training, held_out)
    for images, labels in training:
        training.step(functional.cross_entropy(model(images), labels))


if __name__ == "__main__":
    main()
