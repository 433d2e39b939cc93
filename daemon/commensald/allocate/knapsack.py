"""The counts that exact.py finds, found by HiGHS: a binary for each size of each training. Caps on certain nodes are not seen here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from commensald.allocate.caps import concerns
from commensald.allocate.exact import value
from commensald.allocate.floors import attempts
from commensald.allocate.highs import Columns, Floats, Programme, Solution
from commensald.decision import Cap, Demand

Options = Sequence[tuple[Columns, Floats]]
"""Sizes that a training may have, and what they are worth."""
Room = tuple[Sequence[int], int]
"""Trainings, by number, and how many nodes they may have together."""


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes for each training, ``None`` where no optimum was proved; HiGHS's seconds."""

    sizes: tuple[int, ...] | None
    seconds: float


def counts(
    demands: Sequence[Demand],
    held: Sequence[int],
    nodes: int,
    look_ahead_seconds: float,
    *,
    caps: Iterable[Cap] = (),
    limit_seconds: float = 10.0,
) -> tuple[int, ...]:
    """Nodes for each of ``demands``; where HiGHS proves no optimum, what they hold, within their limits.

    Raises InputError without highspy.
    """
    found = solve(demands, held, nodes, look_ahead_seconds, caps=caps, limit_seconds=limit_seconds)
    if found.sizes is not None:
        return found.sizes
    return tuple(min(now, each.max_nodes) if now >= each.min_nodes else 0 for each, now in zip(demands, held, strict=True))


def solve(
    demands: Sequence[Demand],
    held: Sequence[int],
    nodes: int,
    look_ahead_seconds: float,
    *,
    caps: Iterable[Cap] = (),
    limit_seconds: float = 10.0,
) -> Counted:
    """The proved optimum, if HiGHS comes to one within its limit. Raises InputError without highspy."""
    if not demands:
        return Counted(sizes=(), seconds=0.0)
    options = [option(each, now, nodes, look_ahead_seconds) for each, now in zip(demands, held, strict=True)]
    rooms: list[Room] = [(range(len(demands)), nodes)]
    rooms += [([index for index, each in enumerate(demands) if concerns(cap, each)], cap.most) for cap in caps if cap.nodes is None]
    for floors in attempts(demands, nodes):
        found, columns = _choose(options, [room for room in rooms if room[0]], floors, limit_seconds)
        if not found.infeasible:
            break
    taken = (int(sizes[found.values[each].argmax()]) for (sizes, _), each in zip(options, columns, strict=True)) if found.optimal else None
    return Counted(sizes=None if taken is None else tuple(taken), seconds=found.seconds)


def option(demand: Demand, held: int, nodes: int, look_ahead_seconds: float) -> tuple[Columns, Floats]:
    """Sizes that ``demand`` may have of ``nodes``, and what they are worth to it."""
    worth = value(demand, held, min(demand.max_nodes, nodes), look_ahead_seconds)
    sizes = np.flatnonzero(np.isfinite(worth)).astype(np.int32)
    return sizes, worth[sizes]


def _choose(options: Options, rooms: Sequence[Room], floors: Sequence[int], limit_seconds: float) -> tuple[Solution, list[Columns]]:
    """HiGHS's answer, and the columns of each training, one of which it takes."""
    programme = Programme()
    columns = [programme.columns(sizes.size, gain=worth) for sizes, worth in options]
    for (sizes, _), each, floor in zip(options, columns, floors, strict=True):
        programme.rows((1.0, each[None]), at_least=1.0, at_most=1.0)
        programme.rows((sizes[None], each[None]), at_least=floor)
    for trainings, most in rooms:
        sizes, chosen = (np.concatenate([each[index] for index in trainings])[None] for each in ([sizes for sizes, _ in options], columns))
        programme.rows((sizes, chosen), at_most=most)
    return programme.solve(limit_seconds), columns
