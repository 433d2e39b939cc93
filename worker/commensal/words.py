"""The flat memory of a step: gradients, running statistics, which parameters were used, control words."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch

from commensal.data import Indices
from commensal.ring import Ring

HOLD, STOP, SAVE, SAMPLES, SUM, SQUARES, LOSS = range(7)
CONTROL_WORDS = 7
PRIME = 4093
"""Checksum words stay below it, so that 4096 members' sum is an exact float32."""


class StreamError(RuntimeError):
    """The members of a step did not compute exactly its samples: they disagree, and going on would train on wrong sums."""


class Words:
    """The memory that the ring adds up, and where each part of it lies. On an accelerator the ring's memory is a staging copy
    (untested: none was at hand)."""

    def __init__(self, ring: Ring, gradients: int, statistics: int, parameters: int, device: torch.device) -> None:
        edges = np.cumsum([0, gradients, statistics, parameters, CONTROL_WORDS]).tolist()
        self._ring = ring
        self._host = ring.memory(edges[-1])
        self._all = self._host if device.type == "cpu" else torch.zeros(edges[-1], device=device)
        self.gradients, self.statistics, self.used, self.control = (self._all[low:high] for low, high in pairwise(edges))
        self._tail = (edges[1], edges[-1])

    def reduce(self, low: int, high: int) -> None:
        """Start adding up words [low, high)."""
        if self._all is not self._host:
            self._host[low:high].copy_(self._all[low:high])
        self._ring.reduce(low, high)

    def reduce_tail(self) -> None:
        """Start adding up all that is not gradients."""
        self.reduce(*self._tail)

    def wait(self) -> None:
        """Wait for the sums. Raises ring.Lost."""
        self._ring.wait()
        if self._all is not self._host:
            self._all.copy_(self._host)

    def clear(self) -> None:
        """All words are zero again."""
        self._all.zero_()


def checksum(indices: Indices) -> tuple[float, float, float]:
    """Count, sum and sum of squares of sample indices, the latter two modulo PRIME."""
    rest = indices % PRIME
    return float(len(indices)), float(rest.sum() % PRIME), float((rest * rest % PRIME).sum() % PRIME)


def check(control: list[float], indices: Indices, step: int) -> None:
    """Raises StreamError unless the summed control words tell of exactly the samples ``indices``."""
    found = (control[SAMPLES], control[SUM] % PRIME, control[SQUARES] % PRIME)
    expected = checksum(indices)
    if found != expected:
        raise StreamError(f"step {step}: the members' samples (count, sums) are {found}, expected {expected}")
