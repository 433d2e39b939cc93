"""Floors: nodes that an active training has for sure, as long as there are enough for all floors. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from commensald.decision import Demand


def kept(demands: Sequence[Demand], nodes: int) -> tuple[int, ...]:
    """The floors that hold among ``nodes``, each at least its training's minimum, 0 for none.

    While they do not all fit, the one of least weight is dropped, of equal weights the last.
    """
    floors = [min(max(each.floor_nodes, each.min_nodes), each.max_nodes) if each.floor_nodes else 0 for each in demands]
    for index in sorted(range(len(floors)), key=lambda index: (demands[index].weight, -index)):
        if sum(floors) <= nodes:
            break
        floors[index] = 0
    return tuple(floors)


def attempts(demands: Sequence[Demand], nodes: int) -> tuple[tuple[int, ...], ...]:
    """Floors to try in turn where caps may rule them out: those that hold, then none."""
    floors = kept(demands, nodes)
    return (floors, (0,) * len(floors)) if any(floors) else (floors,)


def fair(demands: Sequence[Demand], nodes: int, part: float) -> tuple[Demand, ...]:
    """``demands`` with a floor of ``part`` of each one's share of ``nodes`` by weight, rounded down; of less than its minimum: none."""
    if not part:
        return tuple(demands)
    whole = sum(each.weight for each in demands)
    return tuple(_floored(each, int(part * nodes * each.weight / whole)) for each in demands)


def _floored(demand: Demand, share: int) -> Demand:
    floor = max(demand.floor_nodes, share if share >= demand.min_nodes else 0)
    return msgspec.structs.replace(demand, floor_nodes=floor)
