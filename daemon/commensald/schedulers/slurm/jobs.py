"""Jobs: records to :class:`~commensald.cluster.Job`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from commensald.cluster import Job, JobState
from commensald.node_lists import node_names
from commensald.schedulers import SchedulerError
from commensald.schedulers.slurm.records import Record, count, need
from commensald.schedulers.slurm.states import job_state
from commensald.schedulers.slurm.times import duration, instant

ARRAY_TASKS = 20
"""Of a job array's waiting tasks so many are planned, as Slurm's backfill does (``bf_max_job_array_resv``, slurm.conf(5))."""

_USER = re.compile(r"(.*)\(\d+\)", re.DOTALL)
_TASKS = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::([1-9]\d{0,8}))?)?", re.ASCII)
_ON_NODES = frozenset({JobState.RUNNING, JobState.SUSPENDED, JobState.COMPLETING})
_NULL = "(null)"


def jobs(records: Iterable[Record]) -> tuple[Job, ...]:
    """All of them; a record that cannot be understood is a job in state UNKNOWN, which counts as present. Raises UnreadableError."""
    return tuple(job for record in records for job in _jobs(record))


def _jobs(record: Record) -> Iterator[Job]:
    try:
        job = _job(record)
    except SchedulerError:
        yield Job(id=need(record, "JobId"), name=record.get("JobName", ""), owner=_owner(record), state=JobState.UNKNOWN, node_count=1)
        return
    yield from _tasks(job, record) if job.state is JobState.PENDING else (job,)


def _job(record: Record) -> Job:
    state = job_state([need(record, "JobState")], record.get("Reason", ""))
    return Job(
        id=need(record, "JobId"),
        name=record.get("JobName", ""),
        owner=_owner(record),
        account=_known(record.get("Account", "")),
        partition=need(record, "Partition"),
        state=state,
        nodes=() if state is JobState.PENDING else node_names(need(record, "NodeList")),
        node_count=count(need(record, "NumNodes")),
        submitted=instant(need(record, "SubmitTime")),
        eligible=instant(record.get("EligibleTime", "")),
        start=instant(need(record, "StartTime")),
        end=instant(need(record, "EndTime")),
        time_limit=duration(need(record, "TimeLimit")),
        priority=float(count(record.get("Priority") or "0")),
        planned_nodes=node_names(record.get("SchedNodeList", "")) if state is JobState.PENDING else (),
        comment=_known(record.get("Comment", "")),
        preempted_at=instant(record.get("PreemptTime", "")) if state in _ON_NODES else None,
    )


def _owner(record: Record) -> str:
    match = _USER.fullmatch(record.get("UserId", ""))
    return match[1] if match else ""


def _known(text: str) -> str:
    return "" if text == _NULL else text


def _tasks(job: Job, record: Record) -> Iterator[Job]:
    """The waiting tasks of an array as jobs; what is planned for it is planned for the first."""
    waiting = _task_ids(record.get("ArrayTaskId", ""), record.get("ArrayTaskThrottle", ""))
    if not waiting:
        yield job
    for position, task in enumerate(waiting):
        each = job if position == 0 else msgspec.structs.replace(job, start=None, end=None, planned_nodes=())
        yield msgspec.structs.replace(each, id=f"{need(record, 'ArrayJobId')}_{task}")


def _task_ids(text: str, throttle: str) -> list[int]:
    """The first of several tasks ("5-20%3", "1,5-9", "0-98:2", perhaps cut: "1-3,..."), as many as may run; empty for a single one."""
    ranges, _, limit = text.partition("%")
    if ranges.isdecimal() or not ranges:
        return []
    tasks: list[int] = []
    for part in ranges.strip("[]").split(","):
        match = _TASKS.fullmatch(part)
        if match is not None:
            tasks += range(int(match[1]), int(match[2] or match[1]) + 1, int(match[3] or 1))[:ARRAY_TASKS]
    at_once = _TASKS.fullmatch(limit or throttle)
    return tasks[: min(ARRAY_TASKS, int(at_once[1]) or ARRAY_TASKS)] if at_once else tasks[:ARRAY_TASKS]
