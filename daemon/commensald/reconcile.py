"""What the ledger says of our pilots against what the queue shows. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from commensald.cluster import Job, JobState, Snapshot
from commensald.decision import Pilot
from commensald.ledger import PilotRecord

ABSENCES = 2
"""A pilot is gone when this many full snapshots in a row do not show it."""
MOST_GRACE_SECONDS = 900.0
OVERDUE_SECONDS = 2.0
"""A pilot that still runs this long after its grace is not on its way out: the scheduler has forgotten it (SchedMD/slurm#216)."""


def ours(snapshot: Snapshot, owner: str) -> dict[str, Job]:
    """The jobs that carry our tag, by the pilot's uuid; ended ones are left out."""
    tagged = {each.pilot(owner): each for each in snapshot.jobs if each.state is not JobState.ENDED}
    return {uuid: job for uuid, job in tagged.items() if uuid is not None}


def ended(snapshot: Snapshot, owner: str) -> dict[str, Job]:
    """Jobs with our tag that have ended and that the scheduler still remembers, by the pilot's uuid."""
    tagged = {each.pilot(owner): each for each in snapshot.jobs if each.state is JobState.ENDED}
    return {uuid: job for uuid, job in tagged.items() if uuid is not None}


def strangers(jobs: Mapping[str, Job], known: Collection[str]) -> tuple[str, ...]:
    """Ids of jobs with our tag that the ledger does not know as open: nobody will ever use them."""
    return tuple(job.id for uuid, job in sorted(jobs.items()) if uuid not in known and job.state is not JobState.COMPLETING)


def absences(records: Iterable[PilotRecord], jobs: Collection[str], before: Mapping[str, int], asked: float) -> dict[str, int]:
    """How many snapshots in a row have not shown each pilot; one submitted after ``asked`` could not be shown yet."""
    return {each.uuid: before.get(each.uuid, 0) + 1 for each in records if each.uuid not in jobs and each.submitted < asked}


def pilots(records: Iterable[PilotRecord], jobs: Mapping[str, Job], seen: Collection[str], cancelled: Collection[str]) -> tuple[Pilot, ...]:
    """Our pilots as decide() takes them. One that was ``seen`` and is not shown now has ended, one never seen may still come."""
    present = (each for each in records if each.uuid in jobs or each.uuid not in seen)
    return tuple(_pilot(each, jobs.get(each.uuid), each.uuid in cancelled) for each in present)


def begun(records: Iterable[PilotRecord], jobs: Mapping[str, Job]) -> tuple[PilotRecord, ...]:
    """Pilots that the queue shows running for the first time, with their node and start."""
    fresh = ((each, jobs[each.uuid]) for each in records if each.started is None and each.uuid in jobs)
    return tuple(
        msgspec.structs.replace(each, started=job.start, node=job.nodes[0])
        for each, job in fresh
        if job.state is not JobState.PENDING and job.nodes and job.start is not None
    )


def requeued(records: Iterable[PilotRecord], jobs: Mapping[str, Job]) -> tuple[str, ...]:
    """Pilots that have run and wait again: Slurm from 24.05 on requeues one that leaves within its grace. Nobody needs them."""
    waiting = {uuid for uuid, job in jobs.items() if job.state in (JobState.PENDING, JobState.HELD)}
    return tuple(each.uuid for each in records if each.started is not None and each.uuid in waiting)


def overdue(jobs: Mapping[str, Job], grace_seconds: float, now: float) -> tuple[str, ...]:
    """Pilots that were preempted and still run past their grace, which would keep a primary job waiting."""
    leaving = ((uuid, job, job.preempted_at) for uuid, job in jobs.items() if job.state is JobState.RUNNING)
    return tuple(uuid for uuid, job, at in leaving if at is not None and now > _grace_end(job, at, grace_seconds) + OVERDUE_SECONDS)


def _grace_end(job: Job, preempted_at: float, grace_seconds: float) -> float:
    """The end that Slurm gives to a preempted job; one that is further away than any grace was put back, and the preemption forgotten."""
    if job.end is not None and 0.0 < job.end - preempted_at <= MOST_GRACE_SECONDS:
        return job.end
    return preempted_at + grace_seconds


def _pilot(record: PilotRecord, job: Job | None, cancelled: bool) -> Pilot:
    running = job is not None and job.state is JobState.RUNNING
    leaving = job is not None and (job.preempted_at is not None or job.state in (JobState.COMPLETING, JobState.SUSPENDED))
    return Pilot(
        uuid=record.uuid,
        owner=record.owner,
        node=job.nodes[0] if job is not None and job.nodes else record.node,
        running=running,
        ends=None if job is None else job.end,
        preempted=leaving or cancelled,
    )


def seconds_left(job: Job, grace_seconds: float, now: float) -> float | None:
    """Until its node is taken: the job's own end, or once it is preempted the end of its grace; ``None`` when neither is known."""
    ends = [job.end] if job.end is not None else []
    if job.preempted_at is not None:
        ends.append(job.preempted_at + grace_seconds)
    return max(min(ends) - now, 0.0) if ends and job.state is JobState.RUNNING else None


def backoff(failures: int, retry_at: float | None, now: float, first_seconds: float, most_seconds: float) -> tuple[int, float]:
    """(failures in a row, when to try again) after one more failure at ``now``.

    Members that fail before the next try count as one failure; a long good run before it starts the count anew.
    """
    if retry_at is not None and now < retry_at:
        return failures, retry_at
    in_row = 0 if retry_at is not None and now - retry_at > most_seconds else failures
    return in_row + 1, now + min(first_seconds * 2.0 ** min(in_row, 60), most_seconds)
