"""One replay and what it is measured against, put together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import msgspec
import numpy as np

from commensald.replay.reference import Reference, Watch, reference
from commensald.replay.report import Delays, Report
from commensald.replay.simulate import Clock, Outcome, Rules, simulate
from commensald.replay.traces import Trace
from commensald.replay.workload import Costs, Kind
from commensald.strict import InputError

RING = Costs(grow_stall=0.15, shrink_stall=0.15, warmup=7.0)
"""Our own ring: ``recovery_seconds_median`` and ``join_seconds_median`` of the demo on a quiet machine of two cores."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """How a pool is to be used: by ``kinds``, repeated endlessly; ``measured_ring`` asks for RING's costs as well."""

    kinds: Sequence[Kind]
    rules: Rules = Rules()
    costs: Costs = Costs()
    measured_ring: bool = False


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What happened, also at RING's costs if that was asked, and what would have without change or cost."""

    outcome: Outcome
    against: Reference
    ring: Outcome | None


def answer(asked: Question, pool: Trace, clock: Clock, watch: Watch) -> Answer:
    """Replay. Raises InputError where dedicated nodes could have trained nothing either."""
    against = reference(pool, asked.kinds, asked.rules.trainers, clock, watch)
    if against.dedicated <= 0:
        raise InputError(f"{pool.equivalent_nodes:.2f} nodes were idle on average: too few for any of the trainers")

    def at(costs: Costs, what: str) -> Outcome:
        return simulate(pool, (costs.of(kind) for kind in cycle(asked.kinds)), asked.rules, clock, watch(what))

    ring = at(RING, "replay, our ring") if asked.measured_ring else None
    return Answer(outcome=at(asked.costs, "replay"), against=against, ring=ring)


def report(found: Answer, pool: Trace, seconds: float, delays: Delays | None = None) -> Report:
    """The figures; ``seconds`` is what all of it took."""
    outcome, dedicated = found.outcome, found.against.dedicated
    median, slow = np.percentile(outcome.decision_seconds, [50, 99])
    return Report(
        n_eq=pool.equivalent_nodes,
        u=outcome.trained / dedicated,
        u_star=found.against.best / dedicated,
        u_over_u_star=outcome.trained / found.against.best,
        used_node_time=outcome.used_node_seconds(pool.end) / (pool.equivalent_nodes * pool.seconds),
        rescale_loss=outcome.points[-1].rescale_lost / dedicated,
        preempt_loss=outcome.points[-1].preempt_lost / dedicated,
        preempted_trainers=outcome.preempted,
        finished_trainers=outcome.finished,
        events=len(pool.changes),
        decision_seconds_p50=float(median),
        decision_seconds_p99=float(slow),
        seconds=seconds,
        primary_delay_seconds_mean=delays.mean if delays else None,
        primary_delay_seconds_p50=delays.median if delays else None,
        primary_delay_seconds_max=delays.most if delays else None,
        u_measured_ring=found.ring.trained / dedicated if found.ring else None,
    )
