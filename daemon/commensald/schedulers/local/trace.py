"""A log of a large machine as the workload of a small one: fewer nodes, faster clock, from a busy moment on."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from commensald.schedulers.local.swf import SwfJob, SwfLog
from commensald.schedulers.local.virtual import starts_until_pending
from commensald.schedulers.local.workload import WorkloadJob

FLOOR_SECONDS = 5.0
"""No job runs, or may run, for less."""


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """From the log's machine to ours."""

    nodes: int
    speedup: float

    def node_count(self, job: SwfJob, log: SwfLog) -> int:
        """The job's share of the machine, in our nodes: rounded, at least one, at most all."""
        share = job.processors / log.processors
        return min(self.nodes, max(1, round(share * self.nodes)))

    def seconds(self, job: SwfJob) -> float:
        """How long it runs."""
        return max(FLOOR_SECONDS, job.seconds / self.speedup)

    def time_limit(self, job: SwfJob) -> float:
        """What it asked for: not less than it ran, unless the log says that it overran. Unasked: what it ran."""
        if job.requested_seconds is None:
            return self.seconds(job)
        asked = max(FLOOR_SECONDS, job.requested_seconds / self.speedup)
        return asked if job.seconds > job.requested_seconds else max(asked, self.seconds(job))


def workload(log: SwfLog, scale: Scale, origin: float | None = None) -> tuple[WorkloadJob, ...]:
    """The log's jobs from ``origin`` on (``None``: from its first moment with a pending job), on ``scale.nodes`` nodes.

    Jobs that ran at that moment come first, with what is left of them, then the ones that waited, all at 0; then the rest.
    A log that does not tell waits is scheduled by our own core first.
    """
    begun = _starts(log, scale)
    if origin is None:
        origin = first_pending(log.jobs, begun)
    present = [(at, job) for at, job in zip(begun, log.jobs, strict=True) if at + job.seconds > origin]
    running = sorted((pair for pair in present if pair[0] <= origin), key=lambda pair: pair[0])
    waiting = [job for at, job in present if at > origin]
    return (
        *(_left(job, origin - at, log, scale) for at, job in running),
        *(_whole(job, max(0.0, job.submit - origin) / scale.speedup, log, scale) for job in waiting),
    )


def first_pending(jobs: Sequence[SwfJob], begun: Sequence[float]) -> float:
    """The first moment at which a job waits: the first submission of one that does not start at once; else the first of all."""
    return min((job.submit for at, job in zip(begun, jobs, strict=True) if at > job.submit), default=jobs[0].submit)


def _starts(log: SwfLog, scale: Scale) -> list[float]:
    if any(job.wait is not None for job in log.jobs):
        return [job.submit + (job.wait or 0.0) for job in log.jobs]
    slow = Scale(nodes=scale.nodes, speedup=1.0)
    return starts_until_pending([_whole(job, job.submit, log, slow) for job in log.jobs], scale.nodes)


def _whole(job: SwfJob, at: float, log: SwfLog, scale: Scale) -> WorkloadJob:
    return WorkloadJob(
        at=at,
        node_count=scale.node_count(job, log),
        seconds=scale.seconds(job),
        time_limit=scale.time_limit(job),
        name=f"swf-{job.id}",
        owner="unknown" if job.user is None else f"user{job.user}",
    )


def _left(job: SwfJob, run: float, log: SwfLog, scale: Scale) -> WorkloadJob:
    """A job that has run for ``run`` seconds of the log when we begin."""
    asked = None if job.requested_seconds is None else max(1.0, job.requested_seconds - run)
    return _whole(msgspec.structs.replace(job, seconds=job.seconds - run, requested_seconds=asked), 0.0, log, scale)
