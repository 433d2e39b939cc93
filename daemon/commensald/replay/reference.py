"""What a replay is measured against: dedicated nodes, and the best split of the pool when nothing costs anything.

Both run the same queue with every finish an event. On dedicated nodes the split changes only when a trainer finishes; N_eq is rarely whole,
so it is interpolated between the two whole numbers around it. For trainers that are all alike both are integrals over the best total
rate by number of nodes; for others they are replays without costs, and then the best split is not a bound (research/policy.md D: which
trainers are at work differs).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import cycle

import msgspec
import numpy as np
from numpy.typing import NDArray

from commensald.replay.simulate import Clock, Rules, Tick, simulate
from commensald.replay.traces import Change, Trace
from commensald.replay.workload import FREE, Kind

Watch = Callable[[str], Tick]
"""Begins a stretch of work of that name."""


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """Samples: on N_eq dedicated nodes (A_s), and with the best no-cost split of the pool at each instant."""

    dedicated: float
    best: float


def reference(trace: Trace, kinds: Sequence[Kind], trainers: int, clock: Clock, watch: Watch) -> Reference:
    """For ``trainers`` at once of ``kinds``, repeated endlessly."""
    free = [FREE.of(kind) for kind in kinds]
    if all(kind == free[0] for kind in free):
        return _alike(trace, free[0], trainers)
    rules = Rules(trainers=trainers)
    best = simulate(trace, cycle(free), rules, clock, watch("best split")).trained
    low, high = math.floor(trace.equivalent_nodes), math.ceil(trace.equivalent_nodes)
    samples = [simulate(_constant(trace, nodes), cycle(free), rules, clock, watch("dedicated nodes")).trained for nodes in (low, high)]
    return Reference(dedicated=float(np.interp(trace.equivalent_nodes, (low, high), samples)), best=best)


def _alike(trace: Trace, kind: Kind, trainers: int) -> Reference:
    sizes = list(trace.sizes())
    totals = best_totals(kind, trainers, max(nodes for _, nodes in sizes))
    dedicated = float(np.interp(trace.equivalent_nodes, np.arange(totals.size), totals))
    return Reference(dedicated=dedicated * trace.seconds, best=sum(seconds * float(totals[nodes]) for seconds, nodes in sizes))


def best_totals(kind: Kind, trainers: int, most: int) -> NDArray[np.float64]:
    """The best total rate of ``trainers`` of a kind on 0..``most`` nodes."""
    totals = np.zeros(most + 1)
    for _ in range(trainers):
        more = totals.copy()
        for nodes in range(kind.min_nodes, min(kind.max_nodes, most) + 1):
            more[nodes:] = np.maximum(more[nodes:], totals[: most + 1 - nodes] + kind.rate(nodes))
        totals = more
    return totals


def _constant(trace: Trace, nodes: int) -> Trace:
    """So many nodes, all the time."""
    change = Change(trace.start, joined=frozenset(f"{place:06d}" for place in range(nodes)))
    return Trace(start=trace.start, end=trace.end, changes=(change,))
