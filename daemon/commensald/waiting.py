"""Why an active training has no node: what its researcher would otherwise have to guess. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commensald.decision import Demand


def reasons(asked: Sequence[Demand], allowed: Sequence[Demand], given: Mapping[str, frozenset[str]], free: int) -> dict[str, str]:
    """Training -> why it waits. ``asked`` are the demands, ``allowed`` what limits and the autoscaler left of them, ``given`` the decision,
    ``free`` the nodes without a primary job."""
    may = {each.training: each for each in allowed}
    waits = [each for each in asked if each.active and not each.nodes and not given.get(each.training)]
    return {each.training: _reason(each, may.get(each.training), free) for each in waits}


def _reason(want: Demand, may: Demand | None, free: int) -> str:
    if want.min_nodes > free:
        return f"needs {want.min_nodes} nodes, {free} are free of primary jobs"
    if may is None or not may.active:
        return "its turn comes with the autoscaler's next interval"
    return "its pilots are yet to start" if free else "no node is free of primary jobs"
