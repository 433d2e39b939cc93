"""A replay: decide() shares a recorded pool among an endless queue of trainers; work and its losses are counted.

At each change of the pool who lost nodes is preempted, the finished make room for the next in line, and decide() shares what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from commensald.decide import decide
from commensald.decision import Policy
from commensald.replay.traces import Change, Trace
from commensald.replay.trainer import Trainer
from commensald.replay.workload import Kind
from commensald.replay.world import World

Clock = Callable[[], float]
"""Seconds, to measure decisions with."""
Tick = Callable[[float], None]
"""Told the share of the trace that is behind."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How trainers are run."""

    policy: Policy = Policy()
    trainers: int = 10
    """At once; the others wait in line."""
    charge_cold_start: bool = True
    finish_is_event: bool = True
    """False: the authors' rule, a trainer that is done keeps its nodes until the pool changes, and what it does there is dropped."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """From ``at`` on: nodes in the pool and in use, samples per second; and what was lost until then, in samples."""

    at: float
    pool: int
    used: int
    rate: float
    rescale_lost: float
    preempt_lost: float


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay did; losses are among the points."""

    trained: float
    """Samples, of finished and unfinished trainers."""
    finished: int
    preempted: int
    """Trainers that lost nodes, summed over the changes of the pool."""
    points: tuple[Point, ...]
    decision_seconds: tuple[float, ...]

    def used_node_seconds(self, end: float) -> float:
        """Node-seconds that trainers held until ``end``."""
        ends = [*(each.at for each in self.points[1:]), end]
        return sum(each.used * (until - each.at) for each, until in zip(self.points, ends, strict=True))


@dataclass
class _Tally:
    trained: float = 0.0
    finished: int = 0
    preempted: int = 0
    rescale_lost: float = 0.0
    preempt_lost: float = 0.0
    points: list[Point] = field(default_factory=list)
    decision_seconds: list[float] = field(default_factory=list)


def simulate(trace: Trace, queue: Iterable[Kind], rules: Rules, clock: Clock, tick: Tick) -> Outcome:
    """Replay ``trace`` with the trainers of ``queue``, which must not end."""
    replay = _Replay(iter(queue), rules, clock)
    for change, until in zip(trace.changes, [*(each.at for each in trace.changes[1:]), trace.end], strict=True):
        replay.change(change)
        replay.run(change.at, until)
        tick((until - trace.start) / trace.seconds)
    return replay.outcome()


class _Replay:
    def __init__(self, queue: Iterator[Kind], rules: Rules, clock: Clock) -> None:
        self._queue, self._rules, self._clock = queue, rules, clock
        self._world = World()
        self._trainers: list[Trainer] = []
        self._admitted = 0
        self._tally = _Tally()

    def change(self, change: Change) -> None:
        """The pool changes: who loses a node is preempted, then all is decided anew."""
        self._world.change(change.joined, change.left)
        hit = [each for each in self._trainers if not each.nodes.isdisjoint(change.left)]
        self._tally.preempted += len(hit)
        self._tally.preempt_lost += sum(each.preempt(change.left) for each in hit)
        self._decide(change.at)

    def run(self, now: float, until: float) -> None:
        """Train; a trainer that finishes before ``until`` makes room for the next one, if the rules make that an event."""
        left = until - now
        while self._rules.finish_is_event and (seconds := min(each.seconds_left for each in self._trainers)) < left:
            self._train(seconds)
            left -= seconds
            self._decide(until - left)
        self._train(left)

    def outcome(self) -> Outcome:
        """All that was counted."""
        tally = self._tally
        return Outcome(
            trained=tally.trained + sum(each.done for each in self._trainers),
            finished=tally.finished,
            preempted=tally.preempted,
            points=tuple(tally.points),
            decision_seconds=tuple(tally.decision_seconds),
        )

    def _train(self, seconds: float) -> None:
        for trainer in self._trainers:
            trainer.train(seconds)

    def _decide(self, now: float) -> None:
        self._admit()
        demands = [each.demand() for each in self._trainers]
        snapshot, forecast, pilots = self._world.look(now)
        begun = self._clock()
        decision = decide(snapshot, forecast, demands, pilots, now, self._rules.policy)
        self._tally.decision_seconds.append(self._clock() - begun)
        charged = self._rules.charge_cold_start
        self._tally.rescale_lost += sum(each.rescale(decision.nodes[each.name], charged) for each in self._trainers)
        self._note(now)

    def _admit(self) -> None:
        """The finished go, the next in line take their places."""
        finished = [each for each in self._trainers if each.finished]
        self._tally.finished += len(finished)
        self._tally.trained += sum(each.done for each in finished)
        self._trainers = [each for each in self._trainers if not each.finished]
        while len(self._trainers) < self._rules.trainers:
            self._trainers.append(Trainer(f"{self._admitted:08d}", next(self._queue)))
            self._admitted += 1

    def _note(self, now: float) -> None:
        tally, used = self._tally, sum(len(each.nodes) for each in self._trainers)
        rate = sum(each.rate for each in self._trainers)
        losses = {"rescale_lost": tally.rescale_lost, "preempt_lost": tally.preempt_lost}
        tally.points.append(Point(at=now, pool=len(self._world.pool), used=used, rate=rate, **losses))
