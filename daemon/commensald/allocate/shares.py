"""Equal shares, whatever a training does with them: the baselines of the exact allocator. Pure.

Both have the allocators' signature; what is held and how far ahead to look changes nothing here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from commensald.decision import Demand


def equal(demands: Sequence[Demand], held: Sequence[int], nodes: int, look_ahead_seconds: float) -> tuple[int, ...]:
    """FreeTrain's baseline: the whole share of nodes/trainings each, what is left to the first, in their order, up to their maximum.

    A training whose share is not above its minimum gets none of it, so that with few nodes the first ones take all (research/papers.md
    1.4). Where the authors' rule would end between 0 and the minimum the training gets nothing.
    """
    share = nodes // max(len(demands), 1)
    sizes = [min(share, each.max_nodes) if share > each.min_nodes else 0 for each in demands]
    left = nodes - sum(sizes)
    for index, each in enumerate(demands):
        more = min(left, each.max_nodes - sizes[index])
        if sizes[index] + more >= each.min_nodes:
            sizes[index] += more
            left -= more
    return tuple(sizes)


def equal_fair(demands: Sequence[Demand], held: Sequence[int], nodes: int, look_ahead_seconds: float) -> tuple[int, ...]:
    """The same number of nodes each, up to each maximum, the remainder one each to the first in their order.

    While shares are below their minimum, who needs most of those goes without (the last, if several do), and the others share again.
    """
    served = list(range(len(demands)))
    while True:
        sizes = _level([demands[index].max_nodes for index in served], nodes)
        short = [index for index, size in zip(served, sizes, strict=True) if size < demands[index].min_nodes]
        if not short:
            break
        served.remove(max(short, key=lambda index: (demands[index].min_nodes, index)))
    shares = dict(zip(served, sizes, strict=True))
    return tuple(shares.get(index, 0) for index in range(len(demands)))


def _level(most: Sequence[int], nodes: int) -> list[int]:
    """``nodes`` poured over vessels that hold ``most`` each."""
    level = bisect_right(range(nodes + 1), nodes, key=lambda height: sum(min(each, height) for each in most)) - 1
    sizes = [min(each, level) for each in most]
    higher = [index for index, each in enumerate(most) if each > level]
    for index in higher[: nodes - sum(sizes)]:
        sizes[index] += 1
    return sizes
