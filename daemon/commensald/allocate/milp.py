"""FreeTrain/BFTrainer's integer programme as published (research/papers.md 1.2).

With ``big_m="published"``, M = nodes + 1, no training may change by more than half the pool at once (1.3); "correct" equals exact.py.
HiGHS has no ordered sets, so a binary for each segment of a curve says which one its weights w may lie on. When HiGHS does not prove an
optimum within its limit, everybody keeps what they hold, as published.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from commensald.allocate.caps import concerns, on, trimmed
from commensald.allocate.curves import rates
from commensald.allocate.exact import gained, present_rate
from commensald.allocate.floors import attempts
from commensald.allocate.highs import Columns, Floats, Programme
from commensald.allocate.placing import own
from commensald.decision import BigM, Cap, Demand


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Training -> nodes; ``optimal`` or what they held before; HiGHS's word and its seconds."""

    nodes: dict[str, frozenset[str]]
    optimal: bool
    status: str
    seconds: float


def plan(
    demands: Sequence[Demand],
    available: frozenset[str],
    look_ahead_seconds: float,
    *,
    big_m: BigM = "correct",
    charge_warmup: bool = True,
    caps: Sequence[Cap] = (),
    limit_seconds: float = 10.0,
) -> Plan:
    """Share ``available`` among ``demands`` within ``caps``, starting from the present map. To charge the warm-up is not in the paper.

    Floors are dropped where they and the caps cannot both be kept. Raises InputError without highspy.
    """
    names, held = sorted(available), own(demands, available)
    if not names or not demands:
        return Plan(nodes=held, optimal=True, status="Empty", seconds=0.0)
    present = np.array([[name in held[each.training] for name in names] for each in demands], np.float64)
    for floors in attempts(demands, len(names)):
        case = _Case(demands, present, look_ahead_seconds, big_m)
        case.within_limits(floors)
        case.without_migration()
        case.charge_stalls()
        case.gain(charge_warmup)
        case.cap(caps, names)
        found = case.programme.solve(limit_seconds, (case.x, present))
        if not found.infeasible:
            break
    nodes = _map(demands, names, found.values[case.x]) if found.optimal else trimmed(caps, demands, held)
    return Plan(nodes=nodes, optimal=found.optimal, status=found.status, seconds=found.seconds)


class _Case:
    """The published programme; letters are the paper's: x is trainings by nodes, ``size`` is N, ``held`` C, ``present`` c."""

    def __init__(self, demands: Sequence[Demand], present: Floats, look_ahead_seconds: float, big_m: BigM) -> None:
        self.demands, self.present, self.seconds = demands, present, look_ahead_seconds
        self.held = present.sum(axis=1)
        trainings, nodes = present.shape
        self.big = nodes + 1 if big_m == "published" else max(2 * nodes, *(each.min_nodes for each in demands)) + 1
        self.programme = Programme()
        self.x = self.programme.columns(trainings, nodes)
        self.size = self.programme.columns(trainings, upper=nodes, integer=False)
        self.programme.rows((1.0, self.x), (-1.0, self.size), at_least=0.0, at_most=0.0)
        self.programme.rows((1.0, self.x.T), at_most=1.0)  # (5)

    def within_limits(self, floors: Sequence[int]) -> None:
        """(3) and (4): 0 or [min, max]; and the floors."""
        rows, size, big = self.programme.rows, self.size, self.big
        small, large = self.programme.columns(size.size), self.programme.columns(size.size)  # z, z'
        rows((1.0, size), (big, small), at_least=[each.min_nodes for each in self.demands])
        rows((1.0, size), (big, small), at_most=big)
        rows((1.0, size), (-big, large), at_most=[each.max_nodes for each in self.demands])
        rows((1.0, size), (big, large), at_most=big)
        rows((1.0, size), at_least=floors)

    def without_migration(self) -> None:
        """(6) and (7): y is x XOR c, and a training only adds or only drops (m)."""
        rows, present = self.programme.rows, self.present.ravel()
        changed, side = self.programme.columns(*self.x.shape), self.programme.columns(self.size.size)
        x, y = self.x.ravel(), changed.ravel()
        rows((1.0, y), (-1.0, x), at_least=-present, at_most=present)
        rows((1.0, y), (1.0, x), at_least=present, at_most=2.0 - present)
        rows((1.0, self.size), (-1.0, changed), (self.big, side), at_least=self.held)
        rows((1.0, self.size), (1.0, changed), (self.big, side), at_most=self.held + self.big)

    def charge_stalls(self) -> None:
        """(8), (9) and the second sum of the objective, at the present rate: starting is free."""
        rows, size, held, big = self.programme.rows, self.size, self.held, self.big
        counts = held.astype(int).tolist()
        now = [each.weight * present_rate(each, count, rates(each.curve, count)) for each, count in zip(self.demands, counts, strict=True)]
        shrink, grow = np.array([each.stalls for each in self.demands]).T * now
        up, down = self.programme.columns(size.size, gain=-grow), self.programme.columns(size.size, gain=-shrink)
        rows((1.0, size), (held - big, up), at_most=held)
        rows((1.0, size), (-held - 1.0, up), at_least=0.0)
        rows((1.0, size), (big - held + 1.0, down), at_most=big)
        rows((1.0, size), (held, down), at_least=held)

    def gain(self, charge_warmup: bool) -> None:
        """(1), (2) and the first sum of the objective."""
        for each, size, held in zip(self.demands, self.size, self.held, strict=True):
            if charge_warmup and (each.warmup_seconds or each.node_seconds):
                gains = gained(each, int(held), rates(each.curve, min(each.max_nodes, self.x.shape[1])), self.seconds)
                self._curve(size, np.arange(gains.size, dtype=np.int32), each.weight * gains)
            else:
                points = _points(each)
                self._curve(size, points, each.weight * self.seconds * rates(each.curve, points[-1])[points])

    def _curve(self, size: np.int32, points: Columns, gains: Floats) -> None:
        """``size`` on the line through (points, gains): two neighbours' weights w add up to one."""
        rows = self.programme.rows
        weights, column = self.programme.columns(1, points.size, gain=gains, integer=False), np.array([size])
        rows((1.0, weights), at_least=1.0, at_most=1.0)
        rows((points[None, :], weights), (-1.0, column), at_least=0.0, at_most=0.0)
        segments = self.programme.columns(1, points.size - 1)
        rows((1.0, segments), at_least=1.0, at_most=1.0)
        rows((1.0, weights[0, 1:-1]), (-1.0, segments[0, :-1]), (-1.0, segments[0, 1:]), at_most=0.0)
        rows((1.0, weights[0, [0, -1]]), (-1.0, segments[0, [0, -1]]), at_most=0.0)

    def cap(self, caps: Sequence[Cap], names: Sequence[str]) -> None:
        """An administrator's caps, a row each."""
        for cap in caps:
            rows = [index for index, each in enumerate(self.demands) if concerns(cap, each)]
            columns = [index for index, name in enumerate(names) if on(cap, name)]
            self.programme.rows((1.0, self.x[np.ix_(rows, columns)].reshape(1, -1)), at_most=cap.most)


def _points(demand: Demand) -> Columns:
    """Node counts between which the curve is straight, from 0 to the maximum at least."""
    given = {nodes for nodes, _ in demand.curve if nodes > 0}
    return np.array(sorted({0, *given, *({demand.max_nodes} if max(given) < demand.max_nodes else ())}), np.int32)


def _map(demands: Sequence[Demand], names: Sequence[str], x: Floats) -> dict[str, frozenset[str]]:
    """x is 0 or 1 within HiGHS's tolerance."""
    given = [frozenset(np.array(names)[row > 0.5].tolist()) for row in x]
    return {each.training: nodes for each, nodes in zip(demands, given, strict=True)}
