"""The optimum within caps over counts of alike nodes: nodes on which the same caps hold are one group.

For pools on which the published programme, with its binary for each training on each node, comes to no end. A size for each training is
chosen as in knapsack.py and made up of nodes of the groups, so that a training only adds or only drops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from commensald.allocate.caps import concerns, on, trimmed
from commensald.allocate.floors import attempts
from commensald.allocate.highs import Columns, Floats, Programme
from commensald.allocate.knapsack import option
from commensald.allocate.milp import Plan
from commensald.allocate.placing import own, place
from commensald.decision import Cap, Demand


def plan(
    demands: Sequence[Demand],
    available: frozenset[str],
    look_ahead_seconds: float,
    expected_seconds: Mapping[str, float],
    *,
    caps: Sequence[Cap] = (),
    limit_seconds: float = 10.0,
) -> Plan:
    """As milp.plan, with the right bound and the warm-up charged; in each group what lasts longest is gained. Raises InputError."""
    held, groups = own(demands, available), _groups(available, caps)
    if not available or not demands:
        return Plan(nodes=held, optimal=True, status="Empty", seconds=0.0)
    present = np.array([[len(held[each.training] & group) for group in groups] for each in demands], np.float64)
    for floors in attempts(demands, len(available)):
        programme = Programme()
        parts = _parts(programme, demands, present, floors, [len(group) for group in groups], look_ahead_seconds)
        _cap(programme, parts, demands, groups, caps)
        found = programme.solve(limit_seconds, (parts, present))
        if not found.infeasible:
            break
    nodes = _placed(demands, groups, found.values[parts], expected_seconds) if found.optimal else trimmed(caps, demands, held)
    return Plan(nodes=nodes, optimal=found.optimal, status=found.status, seconds=found.seconds)


def _groups(available: frozenset[str], caps: Sequence[Cap]) -> list[frozenset[str]]:
    alike: dict[tuple[bool, ...], set[str]] = {}
    for node in available:
        alike.setdefault(tuple(on(cap, node) for cap in caps), set()).add(node)
    return [frozenset(alike[caps_on]) for caps_on in sorted(alike)]


def _parts(
    programme: Programme, demands: Sequence[Demand], present: Floats, floors: Sequence[int], groups: Sequence[int], seconds: float
) -> Columns:
    """Nodes of each training in each group: together a size that it may have, each no less than now, or each no more."""
    parts, most = programme.columns(*present.shape, upper=groups), np.array(groups)
    programme.rows((1.0, parts.T), at_most=most)
    for each, now, part, floor in zip(demands, present, parts, floors, strict=True):
        held = now.sum()
        sizes, worth = option(each, int(held), sum(groups), seconds)
        chosen = programme.columns(1, sizes.size, gain=worth)
        programme.rows((1.0, chosen), at_least=1.0, at_most=1.0)
        programme.rows((sizes[None], chosen), (-1.0, part[None]), at_least=0.0, at_most=0.0)
        programme.rows((1.0, part[None]), at_least=floor)
        gained, given = np.maximum(sizes - held, 0.0), np.maximum(held - sizes, 0.0)
        everywhere = np.repeat(chosen, len(groups), axis=0)
        programme.rows((1.0, part), (-np.minimum.outer(most, gained), everywhere), at_most=now)
        programme.rows((1.0, part), (np.minimum.outer(now, given), everywhere), at_least=now)
    return parts


def _cap(programme: Programme, parts: Columns, demands: Sequence[Demand], groups: Sequence[frozenset[str]], caps: Sequence[Cap]) -> None:
    for cap in caps:
        rows = [index for index, each in enumerate(demands) if concerns(cap, each)]
        columns = [index for index, group in enumerate(groups) if on(cap, next(iter(group)))]
        programme.rows((1.0, parts[np.ix_(rows, columns)].reshape(1, -1)), at_most=cap.most)


def _placed(
    demands: Sequence[Demand], groups: Sequence[frozenset[str]], parts: Floats, expected_seconds: Mapping[str, float]
) -> dict[str, frozenset[str]]:
    sizes = np.rint(parts).astype(int)
    placed = [place(demands, column.tolist(), group, expected_seconds) for column, group in zip(sizes.T, groups, strict=True)]
    return {each.training: frozenset().union(*(nodes[each.training] for nodes in placed)) for each in demands}
