"""The exact allocator: a multiple-choice knapsack over node counts, by dynamic programming.

FreeTrain/BFTrainer's programme reduces to counts, because nodes are alike and a training can always keep its own nodes first
(research/papers.md, section 1.3): with C nodes now, rate r(n) and look-ahead T, a training's value at n nodes is
``weight * (T r(n) - stall r(C) [n != C] - warmup r(n) (n - C)+ / n)``, n in {0} U [min, max]; the sum is maximised over all trainings.
Exact for curves of any shape. Each training is one (max, +) product with what those before it can make of k nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commensald.allocate.curves import rates
from commensald.allocate.floors import kept
from commensald.decision import Demand

Floats = NDArray[np.float64]

_BLOCK = 40
"""Sizes that are tried at once: their sums stay in the processor's cache."""
_TIE = 1e-12
"""Of plans worth the same, the one that moves fewest nodes: each node moved costs this share of the largest value, more than rounding."""


def counts(demands: Sequence[Demand], held: Sequence[int], nodes: int, look_ahead_seconds: float) -> tuple[int, ...]:
    """Nodes for each of ``demands``, which hold ``held`` of them now; at most ``nodes`` in all, floors kept where all of them fit."""
    usable = min(nodes, sum(each.max_nodes for each in demands))
    most = min(usable, max((each.max_nodes for each in demands), default=0))
    worth = _with_floors(demands, held, most, nodes, look_ahead_seconds)
    sizes = np.arange(most + 1)
    scale = float(np.abs(worth[np.isfinite(worth)]).max(initial=0.0))
    worth -= _TIE * scale * np.abs(sizes - np.array(held, np.int64)[:, None])
    stages = [np.zeros(1)]
    for row in worth:
        stages.append(_add(stages[-1], row, usable))
    return _trace(stages, worth)


def value(demand: Demand, held: int, most: int, look_ahead_seconds: float) -> Floats:
    """Samples that ``demand`` makes in the look-ahead on 0..``most`` nodes, weighted, costs deducted; -inf where it may not be."""
    sizes = np.arange(most + 1)
    rate = rates(demand.curve, max(most, held))
    shrink, grow = demand.stalls
    stall = np.where(sizes < held, shrink, grow) * (sizes != held)
    samples = gained(demand, held, rate[: most + 1], look_ahead_seconds) - stall * present_rate(demand, held, rate)
    allowed = (sizes == 0) | ((sizes >= demand.min_nodes) & (sizes <= demand.max_nodes))
    return np.where(allowed, demand.weight * samples, -np.inf)


def gained(demand: Demand, held: int, rate: Floats, look_ahead_seconds: float) -> Floats:
    """Samples that ``demand`` makes at ``rate``, by nodes from 0, less what newcomers miss while they warm up; stalls are not in it."""
    sizes = np.arange(rate.size)
    share_new = np.maximum(sizes - held, 0) / np.maximum(sizes, 1)
    return _samples(demand, rate, look_ahead_seconds) - demand.warmup_seconds * rate * share_new


def present_rate(demand: Demand, held: int, rate: Floats) -> float:
    """Samples per second that a stall takes: none below the minimum, where it does not run."""
    return float(rate[held]) if held >= demand.min_nodes else 0.0


def _samples(demand: Demand, rate: Floats, look_ahead_seconds: float) -> Floats:
    """Without stalls: over the look-ahead, or with what each further node adds for as long as it lasts."""
    if not demand.node_seconds:
        return look_ahead_seconds * rate
    last = len(demand.node_seconds) - 1
    seconds = np.array(demand.node_seconds)[np.minimum(np.arange(rate.size - 1), last)]
    return np.concatenate([[0.0], np.cumsum(np.diff(rate) * seconds)])


def _with_floors(demands: Sequence[Demand], held: Sequence[int], most: int, nodes: int, look_ahead_seconds: float) -> Floats:
    """Values by training and size, -inf also below the floors that hold."""
    worth = np.empty((len(demands), most + 1))
    for row, demand, now, floor in zip(worth, demands, held, kept(demands, nodes), strict=True):
        row[:] = value(demand, now, most, look_ahead_seconds)
        row[:floor] = -np.inf
    return worth


def _add(before: Floats, worth: Floats, usable: int) -> Floats:
    """One more training: for each total k the best of ``before[k - n] + worth[n]``."""
    totals = min(usable + 1, before.size + worth.size - 1)
    padded = np.full(totals + worth.size - 1, -np.inf)
    padded[worth.size - 1 :][: before.size] = before[:totals]
    step = padded.itemsize
    shifted = np.ndarray((worth.size, totals), padded.dtype, padded, (worth.size - 1) * step, (-step, step))  # row n: padded n later
    blocks = (slice(first, first + _BLOCK) for first in range(0, worth.size, _BLOCK))
    return np.asarray(np.max([(shifted[block] + worth[block, None]).max(axis=0) for block in blocks], axis=0))


def _trace(stages: Sequence[Floats], worth: Floats) -> tuple[int, ...]:
    """The sizes behind the best total: the same sums as on the way there, so the largest of them is the one that was taken."""
    total, taken = int(stages[-1].argmax()), []
    for before, row in zip(stages[-2::-1], worth[::-1], strict=True):
        least, most = max(total - before.size + 1, 0), min(total, row.size - 1)
        sizes = np.arange(least, most + 1)
        taken.append(int(sizes[(before[total - sizes] + row[sizes]).argmax()]))
        total -= taken[-1]
    return tuple(reversed(taken))
