"""The exact allocator: a multiple-choice knapsack over node counts, by dynamic programming.

FreeTrain/BFTrainer's programme reduces to counts, because nodes are alike and a training can always keep its own nodes first
(research/papers.md, section 1.3): with C nodes now, rate r(n) and look-ahead T, a training's value at n nodes is
``weight * (T r(n) - stall r(C) [n != C] - warmup r(n) (n - C)+ / n)``, n in {0} U [min, max]; the sum is maximised over all trainings.
Exact for curves of any shape.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commensald.allocate.curves import rates
from commensald.decision import Demand

Floats = NDArray[np.float64]

_BLOCK = 128
_TIE = 1e-10
"""Of two plans worth the same, the one that moves fewer nodes: each node moved costs this share of the largest value."""


def counts(demands: Sequence[Demand], held: Sequence[int], nodes: int, look_ahead_seconds: float) -> tuple[int, ...]:
    """Nodes for each of ``demands``, which hold ``held`` of them now; at most ``nodes`` in all."""
    usable = min(nodes, sum(each.max_nodes for each in demands))
    values = [value(each, now, usable, look_ahead_seconds) for each, now in zip(demands, held, strict=True)]
    scale = max((float(np.abs(each[np.isfinite(each)]).max()) for each in values), default=0.0)
    best, choices = np.zeros(usable + 1), []
    for worth, now in zip(values, held, strict=True):
        moved = np.abs(np.arange(usable + 1) - now)
        best, choice = _add(best, worth - _TIE * scale * moved, np.argsort(moved, kind="stable"))
        choices.append(choice)
    return _trace(choices, usable)


def value(demand: Demand, held: int, most: int, look_ahead_seconds: float) -> Floats:
    """Samples that ``demand`` makes in the look-ahead on 0..``most`` nodes, weighted, costs deducted; -inf where it may not be."""
    sizes = np.arange(most + 1)
    rate = rates(demand.curve, max(most, held))
    now = rate[held] if held >= demand.min_nodes else 0.0
    rate = rate[: most + 1]
    share_new = np.maximum(sizes - held, 0) / np.maximum(sizes, 1)
    shrink, grow = demand.stalls
    stall = np.where(sizes < held, shrink, grow) * (sizes != held)
    samples = look_ahead_seconds * rate - stall * now - demand.warmup_seconds * rate * share_new
    allowed = (sizes == 0) | ((sizes >= demand.min_nodes) & (sizes <= demand.max_nodes))
    return np.where(allowed, demand.weight * samples, -np.inf)


def _add(best: Floats, worth: Floats, order: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
    """One more training: for each total k the best of ``best[k - n] + worth[n]``, and that n; options are tried in ``order``."""
    options = order[np.isfinite(worth[order])]
    totals = np.arange(best.size)
    padded = np.concatenate([np.full(best.size, -np.inf), best])
    result, choice = np.full(best.size, -np.inf), np.zeros(best.size, np.int64)
    for first in range(0, options.size, _BLOCK):
        block = options[first : first + _BLOCK]
        sums = padded[best.size + totals[:, None] - block[None, :]] + worth[block][None, :]
        chosen = sums.argmax(axis=1)
        top = sums[totals, chosen]
        better = top > result
        result, choice = np.where(better, top, result), np.where(better, block[chosen], choice)
    return result, choice


def _trace(choices: Sequence[NDArray[np.int64]], total: int) -> tuple[int, ...]:
    taken = []
    for choice in reversed(choices):
        taken.append(int(choice[total]))
        total -= taken[-1]
    return tuple(reversed(taken))
