"""An administrator's caps: how many nodes some trainings may hold together on some nodes. Only the allocator "milp" keeps them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from commensald.decision import Cap, Demand, Request

Nodes = Mapping[str, frozenset[str]]
"""Training -> nodes."""
Spare = tuple[str, str | None]
"""A pilot that nobody uses, and its node."""


def concerns(cap: Cap, demand: Demand) -> bool:
    """Whether ``demand``'s nodes count."""
    return cap.owner in (None, demand.owner) and cap.account in (None, demand.account)


def on(cap: Cap, node: str | None) -> bool:
    """Whether ``node`` counts."""
    return cap.nodes is None or node in cap.nodes


def left(caps: Iterable[Cap], demands: Sequence[Demand], nodes: Nodes) -> tuple[Cap, ...]:
    """What ``nodes``, given to ``demands``, leave of the caps to others."""
    return tuple(msgspec.structs.replace(cap, most=max(cap.most - _used(cap, demands, nodes), 0)) for cap in caps)


def admitted(caps: Iterable[Cap], demands: Sequence[Demand], present: Sequence[str | None], wanted: Iterable[Request]) -> list[Request]:
    """Of ``wanted``, in its order, those whose nodes some of ``demands`` may have beside the nodes that are ``present``."""
    strict = [cap for cap in caps if cap.nodes is not None and all(concerns(cap, each) for each in demands)]
    rooms = {index: cap.most - sum(on(cap, node) for node in present) for index, cap in enumerate(strict)}
    chosen = []
    for request in wanted:
        hit = [index for index, cap in enumerate(strict) if on(cap, request.node)]
        if all(rooms[index] > 0 for index in hit):
            chosen.append(request)
            rooms |= {index: rooms[index] - 1 for index in hit}
    return chosen


def surplus(caps: Iterable[Cap], demands: Sequence[Demand], present: Sequence[str | None], spare: Iterable[Spare]) -> list[str]:
    """Of the ``spare`` pilots, in their order, those that must go for the ``present`` nodes to be within the caps."""
    over = {cap: sum(on(cap, node) for node in present) - cap.most for cap in caps if all(concerns(cap, each) for each in demands)}
    gone = []
    for pilot, node in spare:
        hit = [cap for cap, count in over.items() if count > 0 and on(cap, node)]
        if hit:
            gone.append(pilot)
            over |= {cap: over[cap] - 1 for cap in hit}
    return gone


def trimmed(caps: Iterable[Cap], demands: Sequence[Demand], nodes: Nodes) -> dict[str, frozenset[str]]:
    """``nodes`` within the caps and everybody's limits: what is too much is given up, by the last training first."""
    kept = {each.training: frozenset(sorted(nodes[each.training])[: each.max_nodes]) for each in demands}
    for cap in caps:
        surplus = max(_used(cap, demands, kept) - cap.most, 0)
        for each in reversed([demand for demand in demands if concerns(cap, demand)]):
            given = sorted(node for node in kept[each.training] if on(cap, node))[:surplus]
            kept[each.training] -= frozenset(given)
            surplus -= len(given)
    return {each.training: kept[each.training] if len(kept[each.training]) >= each.min_nodes else frozenset() for each in demands}


def _used(cap: Cap, demands: Sequence[Demand], nodes: Nodes) -> int:
    return sum(on(cap, node) for each in demands if concerns(cap, each) for node in nodes[each.training])
