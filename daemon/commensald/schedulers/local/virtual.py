"""The embedded cluster with a virtual clock: jobs that only behave like jobs, as fast as the core can think."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence

import msgspec

from commensald.schedulers.local.core import Core
from commensald.schedulers.local.jobs import Action, JobSpec, Kill, Policy, Signal, Start
from commensald.schedulers.local.workload import WorkloadJob


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """What a job would do: end by itself after ``seconds``, or ``exit_seconds`` after a signal (``inf``: it ignores signals)."""

    seconds: float = math.inf
    exit_seconds: float = 0.0


class VirtualCluster:
    """A core and the jobs that run on it. Call ``step`` at each ``next_moment`` and at each submission or change of the core."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.started: dict[str, float] = {}
        self._behaviours: dict[str, Behaviour] = {}
        self._end_at: dict[str, float] = {}
        self._ends: list[tuple[float, str]] = []

    def submit(self, spec: JobSpec, behaviour: Behaviour, now: float) -> None:
        """Queue a job. Raises :class:`RefusedError`."""
        self.core.submit(spec, now)
        self._behaviours[spec.id] = behaviour

    def next_moment(self, now: float) -> float | None:
        """When something happens next by itself."""
        moments = [self._ends[0][0]] if self._ends else []
        event = self.core.next_event(now)
        return min(moments if event is None else [*moments, event], default=None)

    def step(self, now: float) -> list[Action]:
        """Let happen all that is due at ``now``; gives what the core had done."""
        self._end_due(now)
        done = self._advance(now)
        while self._end_due(now):
            done += self._advance(now)
        return done

    def _advance(self, now: float) -> list[Action]:
        actions = self.core.advance(now)
        for action in actions:
            self._follow(action, now)
        return actions

    def _end_due(self, now: float) -> bool:
        """End the jobs whose time has come; tells whether there were any."""
        ended = False
        while self._ends and self._ends[0][0] <= now:
            at, job = heapq.heappop(self._ends)
            if self._end_at.get(job) == at:
                del self._end_at[job]
                self.core.ended(job)
                ended = True
        return ended

    def _follow(self, action: Action, now: float) -> None:
        behaviour = self._behaviours[action.job]
        match action:
            case Start():
                self.started[action.job] = now
                self._end(action.job, now + behaviour.seconds)
            case Signal():
                self._end(action.job, now + behaviour.exit_seconds)
            case Kill():
                self._end(action.job, now)

    def _end(self, job: str, at: float) -> None:
        """The job ends then, unless it does sooner."""
        if at < self._end_at.get(job, math.inf):
            self._end_at[job] = at
            heapq.heappush(self._ends, (at, job))


def play(cluster: VirtualCluster, jobs: Sequence[WorkloadJob]) -> Iterator[float]:
    """Run a workload, sorted by ``at``, until nothing happens any more; its jobs are called 0, 1, 2...

    Gives each moment once it was acted on.
    """
    coming, now = 0, -math.inf
    while True:
        moments = [at for at in (cluster.next_moment(now), jobs[coming].at if coming < len(jobs) else None) if at is not None]
        if not moments:
            return
        now = max(now, min(moments))
        while coming < len(jobs) and jobs[coming].at <= now:
            cluster.submit(_spec(jobs[coming], str(coming)), Behaviour(seconds=jobs[coming].seconds), now)
            coming += 1
        cluster.step(now)
        yield now


def starts_until_pending(jobs: Sequence[WorkloadJob], nodes: int) -> list[float]:
    """When each job starts on so many nodes, up to the first moment at which one must wait; ``inf`` for the others.

    ``jobs`` are sorted by ``at``.
    """
    cluster = VirtualCluster(Core([f"n{i}" for i in range(1, nodes + 1)], Policy()))
    for _ in play(cluster, jobs):
        if cluster.core.pending(pilots=False):
            break
    return [cluster.started.get(str(i), math.inf) for i in range(len(jobs))]


def _spec(job: WorkloadJob, name: str) -> JobSpec:
    return JobSpec(id=name, name=job.name, owner=job.owner, node_count=job.node_count, time_limit=job.time_limit)
