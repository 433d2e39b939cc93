"""From counts to nodes: who keeps which, without ever moving a training from one node to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commensald.decision import Demand


def own(demands: Sequence[Demand], available: frozenset[str]) -> dict[str, frozenset[str]]:
    """Available nodes that each training's members hold; a node claimed twice belongs to the first."""
    left, mine = set(available), {}
    for demand in demands:
        mine[demand.training] = demand.nodes & left
        left -= demand.nodes
    return mine


def place(
    demands: Sequence[Demand],
    counts: Sequence[int],
    available: frozenset[str],
    expected_seconds: Mapping[str, float],
) -> dict[str, frozenset[str]]:
    """Nodes of each training. First all shrink, giving up what will be taken soonest, then all grow, by what lasts longest.

    A training that shrinks gains nothing and one that grows gives nothing up.
    """
    held = own(demands, available)
    longest = sorted(available, key=lambda node: (-expected_seconds.get(node, 0.0), node))
    kept = {each.training: _first(longest, held[each.training], count) for each, count in zip(demands, counts, strict=True)}
    free = available.difference(*kept.values())
    for demand, count in zip(demands, counts, strict=True):
        gained = _first(longest, free, count - len(kept[demand.training]))
        kept[demand.training] |= gained
        free -= gained
    return kept


def _first(order: Sequence[str], among: frozenset[str], count: int) -> frozenset[str]:
    return frozenset([node for node in order if node in among][: max(count, 0)])
