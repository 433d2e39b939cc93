"""The embedded cluster with a virtual clock: primary jobs alone, as fast as the core can think."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence

from commensald.schedulers.local.core import Core
from commensald.schedulers.local.jobs import JobSpec, Kill, Policy, Signal, Start
from commensald.schedulers.local.workload import WorkloadJob


class VirtualCluster:
    """Drives a core through a workload, sorted by ``at``; jobs are named by their place in it and end at the first SIGTERM."""

    def __init__(self, core: Core, jobs: Sequence[WorkloadJob]) -> None:
        self.core = core
        self._jobs = jobs
        self._next = 0
        self._ends: list[tuple[float, str]] = []
        self.started: dict[str, float] = {}

    def run(self) -> Iterator[float]:
        """Step from moment to moment until all jobs have ended; gives each moment, after it was acted on."""
        while (now := self._moment()) is not None:
            self._settle(now)
            yield now

    def _moment(self) -> float | None:
        moments = [self._jobs[self._next].at] if self._next < len(self._jobs) else []
        moments += [self._ends[0][0]] if self._ends else []
        return min(moments, default=None)

    def _settle(self, now: float) -> None:
        while self._ends and self._ends[0][0] <= now:
            self._end(heapq.heappop(self._ends)[1])
        while self._next < len(self._jobs) and self._jobs[self._next].at <= now:
            self.core.submit(_spec(self._jobs[self._next], str(self._next)), now)
            self._next += 1
        for action in self.core.advance(now):
            if isinstance(action, Start):
                self._start(action.job, now)
            elif isinstance(action, Signal | Kill):
                raise AssertionError(f"a job outlived its limit: {action}")

    def _start(self, job: str, now: float) -> None:
        record = self._jobs[int(job)]
        self.started[job] = now
        limit = record.seconds if record.time_limit is None else record.time_limit
        heapq.heappush(self._ends, (now + min(record.seconds, limit), job))

    def _end(self, job: str) -> None:
        if job in self.core.jobs:
            self.core.ended(job)


def starts_until_pending(jobs: Sequence[WorkloadJob], nodes: int) -> list[float]:
    """When each job starts on so many nodes, up to the first moment at which one must wait; ``inf`` for the others.

    ``jobs`` are sorted by ``at``.
    """
    cluster = VirtualCluster(Core([f"n{i}" for i in range(1, nodes + 1)], Policy()), jobs)
    for _ in cluster.run():
        if cluster.core.pending(pilots=False):
            break
    return [cluster.started.get(str(i), math.inf) for i in range(len(jobs))]


def _spec(job: WorkloadJob, name: str) -> JobSpec:
    return JobSpec(id=name, name=job.name, owner=job.owner, node_count=job.node_count, time_limit=job.time_limit)
