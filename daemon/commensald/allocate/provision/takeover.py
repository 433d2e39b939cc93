"""What to ask for when a node was lost: Algorithm 1 once more, with the members that are left as its existing set E."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import numpy as np

from commensald.allocate.provision.curve import CurveRing
from commensald.allocate.provision.loss import Loss, Progress
from commensald.allocate.provision.pace import Goal
from commensald.allocate.provision.ring import SynchronousRing
from commensald.allocate.provision.risk import Revocation
from commensald.allocate.provision.search import fastest
from commensald.allocate.provision.spotdnn import ParameterServer, algorithm_1


class Takeover(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes to ``ask`` for by kind, perhaps none, beside those held; then the goal is reached in ``seconds`` from now for ``cost``."""

    ask: dict[str, int]
    seconds: float
    cost: float
    in_time: bool


def takeover(
    performance: ParameterServer | SynchronousRing | CurveRing,
    loss: Loss,
    goal: Goal,
    held: Mapping[str, int],
    available: Mapping[str, int],
    progress: Progress,
    overhead_seconds: float = Revocation().overhead_seconds,
) -> Takeover | None:
    """The cheapest mix that keeps all ``held`` nodes and still reaches ``goal``, whose limits are what is left of time and budget.

    ``available`` nodes can be had beyond those held; both are counts by kind, and a kind not named counts as none. Where the goal cannot
    be kept any more it is the fastest mix, and ``in_time`` is false. ``None``: the loss is out of reach, or no node can be had.
    """
    names = [kind.name for kind in performance.kinds]
    kinds = tuple(msgspec.structs.replace(kind, quota=available.get(kind.name, 0)) for kind in performance.kinds)
    existing = np.array([held.get(name, 0) for name in names])
    options = algorithm_1(replace(performance, kinds=kinds), loss, goal, existing, progress, overhead_seconds)
    chosen = options.best(goal)
    if chosen is None:
        options = algorithm_1(replace(performance, kinds=kinds), loss, fastest(goal), existing, progress, overhead_seconds)
    row = options.best(fastest(goal)) if chosen is None else chosen
    if row is None:
        return None
    more = options.mixes[row] - existing
    return Takeover(
        ask={name: int(count) for name, count in zip(names, more, strict=True) if count},
        seconds=float(options.seconds[row]),
        cost=float(options.cost[row]),
        in_time=chosen is not None,
    )
