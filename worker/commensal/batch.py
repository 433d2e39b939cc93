"""How a step's batch is cut into logical shards, and which member computes which of them.

Shards are numbered by the training alone, so samples, masks and statistics do not depend on membership (design, promise 3).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from itertools import accumulate, pairwise

import msgspec

from commensal.data import Indices
from commensal.ring import Place


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A step to be done: the samples of all members and how they are cut into shards, the batch asked for, the factor of its rate."""

    place: Place
    indices: Indices
    cut: tuple[range, ...]
    batch: int
    factor: float


def shards(samples: int, micro_batch: int) -> tuple[range, ...]:
    """Cut ``samples`` positions of a batch into ceil(samples / micro_batch) contiguous shards whose sizes differ by at most one.

    Even sizes keep a ragged batch from ending in a shard of one sample, which has no batch statistics.
    """
    count = math.ceil(samples / micro_batch)
    edges = [samples * k // count for k in range(count + 1)]
    return tuple(range(low, high) for low, high in pairwise(edges))


def shares(count: int, speeds: Sequence[float]) -> tuple[range, ...]:
    """The shards of each member, by rank: contiguous, each of ``count`` shards once, the slowest member done as early as possible.

    Greedy list scheduling, exact for equal jobs on machines of known speed: each next shard goes to the member that would finish it first,
    ties to the lower rank. A member may get none. Speeds that are not positive and finite count as the mean of the others.
    """
    rates = _rates(speeds)
    given = [0] * len(rates)
    queue = [(1 / rate, rank) for rank, rate in enumerate(rates)]
    heapq.heapify(queue)
    for _ in range(count):
        _, rank = queue[0]
        given[rank] += 1
        heapq.heapreplace(queue, ((given[rank] + 1) / rates[rank], rank))
    edges = list(accumulate(given, initial=0))
    return tuple(range(low, high) for low, high in pairwise(edges))


def _rates(speeds: Sequence[float]) -> list[float]:
    known = [speed for speed in speeds if 0 < speed < math.inf]
    typical = sum(known) / len(known) if known else 1.0
    return [speed if 0 < speed < math.inf else typical for speed in speeds]
