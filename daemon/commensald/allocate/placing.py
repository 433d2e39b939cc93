"""From counts to nodes: who keeps which, without ever moving a training from one node to another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from commensald.decision import Demand


def lasting(
    demands: Sequence[Demand], held: Mapping[str, frozenset[str]], expected_seconds: Mapping[str, float], most_seconds: float
) -> tuple[Demand, ...]:
    """``demands`` with how long their nodes are expected to stay: first those that are ``held``, then those that nobody holds.

    Trainings that want to grow are told of the same free nodes.
    """

    def seconds(nodes: Iterable[str]) -> tuple[float, ...]:
        return tuple(sorted((min(expected_seconds.get(node, 0.0), most_seconds) for node in nodes), reverse=True))

    free = seconds(expected_seconds.keys() - frozenset().union(*held.values()))
    return tuple(msgspec.structs.replace(each, node_seconds=seconds(held[each.training]) + free[: each.max_nodes]) for each in demands)


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
    order = sorted(available, key=lambda node: (-expected_seconds.get(node, 0.0), node))
    longest = {node: rank for rank, node in enumerate(order)}
    kept = {each.training: _first(longest, held[each.training], count) for each, count in zip(demands, counts, strict=True)}
    free = available.difference(*kept.values())
    for demand, count in zip(demands, counts, strict=True):
        gained = _first(longest, free, count - len(kept[demand.training]))
        kept[demand.training] |= gained
        free -= gained
    return kept


def _first(ranks: Mapping[str, int], among: frozenset[str], count: int) -> frozenset[str]:
    if count >= len(among):
        return among
    return frozenset(sorted(among, key=ranks.__getitem__)[: max(count, 0)])
