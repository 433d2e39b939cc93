"""Our pilots among PBS's jobs: told by the one variable that they are submitted with, and of use only in their first life."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from commensald.cluster import PILOT_TAG, Job, JobState
from commensald.schedulers.pbs.attributes import PILOT
from commensald.schedulers.pbs.records import Record, integer

_VARIABLE = f"Variable_List.{PILOT}"
_WAITS = (JobState.PENDING, JobState.HELD)


def tag(record: Record) -> str:
    """The comment of a pilot's job: what PBS calls a job's comment is the scheduler's to write."""
    return PILOT_TAG + record[_VARIABLE] if _VARIABLE in record else ""


def of_pilots(records: Mapping[str, Record]) -> dict[str, Record]:
    """Those of pilots, anybody's."""
    return {name: record for name, record in records.items() if _VARIABLE in record}


def lives_again(record: Record, state: JobState) -> bool:
    """Whether PBS has requeued this pilot: it waits again, or runs again."""
    return _VARIABLE in record and integer(record.get("run_count", "0")) > (0 if state in _WAITS else 1)


def spent(jobs: Iterable[Job], records: Mapping[str, Record], owner: str) -> tuple[str, ...]:
    """Pilots of ``owner`` that nobody needs any more: those that live again, and those that PBS has suspended."""
    present = (job for job in jobs if job.pilot(owner) is not None and job.id in records)
    return tuple(job.id for job in present if job.state is JobState.SUSPENDED or _again(job, records[job.id]))


def _again(job: Job, record: Record) -> bool:
    return job.state in (*_WAITS, JobState.RUNNING) and lives_again(record, job.state)
