"""The flat memory of a step: gradients, running statistics, the loss, which parameters were used, control words."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np
import torch

from commensal.data import Indices
from commensal.exact import add_limbs, join_limbs, quanta
from commensal.gradients import BUCKET_WORDS
from commensal.ring import Ring

HOLD, STOP, SAVE, SAMPLES, SUM, SQUARES, LOSS = range(7)
CONTROL_WORDS = 7
PRIME = 4093
"""Checksum words stay below it, so that 4096 members' sum is an exact float32."""


class StreamError(RuntimeError):
    """The members of a step did not compute exactly its samples: they disagree, and going on would train on wrong sums."""


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """Words of the gradients and of the running statistics, and the number of parameters."""

    gradients: int
    statistics: int
    parameters: int


class Words:
    """The memory that the ring adds up, and where each part of it lies. On an accelerator the ring's memory is a staging copy
    (untested: none was at hand)."""

    def __init__(self, ring: Ring, sizes: Sizes, device: torch.device) -> None:
        edges = np.cumsum([0, sizes.gradients, sizes.statistics, sizes.parameters, CONTROL_WORDS]).tolist()
        self._ring = ring
        self._host = ring.memory(edges[-1])
        self._all = self._host if device.type == "cpu" else torch.zeros(edges[-1], device=device)
        self.gradients, self.statistics, self.used, self.control = (self._all[low:high] for low, high in pairwise(edges))
        self.loss = self.control[LOSS:]
        self.squares: torch.Tensor | None = None
        """Sum over shards of the squared norm of a shard's mean gradient, where shards are told apart."""
        self._tail = (edges[1], edges[-1])

    def add_shard(self, samples: int) -> None:
        """The sums of one more shard, of ``samples``, are in."""

    def reduce(self, low: int, high: int) -> None:
        """Start adding up the gradients [low, high): they are complete."""
        self._start(low, high)

    def reduce_tail(self) -> None:
        """Start adding up all that is not gradients."""
        self._start(*self._tail)

    def wait(self) -> None:
        """Wait for the sums. Raises ring.Lost."""
        self._ring.wait()
        if self._all is not self._host:
            self._all.copy_(self._host)

    def clear(self) -> None:
        """All words are zero again."""
        self._all.zero_()

    def _start(self, low: int, high: int) -> None:
        if self._all is not self._host:
            self._host[low:high].copy_(self._all[low:high])
        self._ring.reduce(low, high)


class ExactWords(Words):
    """Gradients, statistics and loss as limbs (:mod:`commensal.exact`), so that their sums over ``shards`` are the same for any members.

    They are those of one shard until :meth:`add_shard`, and the sums after :meth:`wait`. Reduction begins after the last shard.
    """

    def __init__(self, ring: Ring, sizes: Sizes, device: torch.device, shards: int) -> None:
        self._quanta = quanta(shards)
        parts = [sizes.gradients, sizes.statistics, 1, 1]
        summed = sum(parts)
        super().__init__(ring, Sizes(gradients=len(self._quanta) * summed, statistics=0, parameters=sizes.parameters), device)
        self._limbs = self.gradients.view(len(self._quanta), summed)
        self._floats = torch.zeros(summed, device=device)
        self.gradients, self.statistics, self.loss, self.squares = torch.split(self._floats, parts)

    def add_shard(self, samples: int) -> None:
        assert self.squares is not None
        self.squares.copy_(self.gradients.square().sum() / samples**2)
        add_limbs(self._floats, self._quanta, self._limbs)
        self._floats.zero_()

    def reduce(self, low: int, high: int) -> None:
        """Not before all shards are in: :meth:`reduce_tail`."""

    def reduce_tail(self) -> None:
        for low in range(0, self._tail[0], BUCKET_WORDS):
            self._start(low, min(low + BUCKET_WORDS, self._tail[0]))
        self._start(*self._tail)

    def wait(self) -> None:
        super().wait()
        join_limbs(self._limbs, self._floats)

    def clear(self) -> None:
        super().clear()
        self._floats.zero_()


def lay_out(ring: Ring, sizes: Sizes, device: torch.device, exact_shards: int | None) -> Words:
    """The memory of a training, with exact sums over up to ``exact_shards`` shards a step unless that is ``None``."""
    return Words(ring, sizes, device) if exact_shards is None else ExactWords(ring, sizes, device, exact_shards)


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
