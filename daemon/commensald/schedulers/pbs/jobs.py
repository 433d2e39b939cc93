"""Jobs: records to :class:`~commensald.cluster.Job`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from commensald.cluster import PILOT_TAG, Job, JobState
from commensald.schedulers import SchedulerError
from commensald.schedulers.pbs import names
from commensald.schedulers.pbs.attributes import PILOT
from commensald.schedulers.pbs.queues import KILL_DELAY_SECONDS, Queue
from commensald.schedulers.pbs.records import Reading, Record, count, integer, need
from commensald.schedulers.pbs.states import RERUN, job_state
from commensald.schedulers.pbs.times import duration, instant

ARRAY_JOBS = 20
"""Of an array's waiting jobs so many are planned, as with Slurm."""
PRIORITIES = 10_000.0
"""A step of a queue's priority outweighs all priorities of jobs (-1024 to 1023)."""
_PLACED = frozenset({JobState.RUNNING, JobState.SUSPENDED, JobState.COMPLETING})


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """What else a job's record means something by: ``hosts`` by vnode, ``queues`` by name, and which of them belong to reservations."""

    hosts: Mapping[str, str] = {}
    queues: Mapping[str, Queue] = {}
    reserved: frozenset[str] = frozenset()


def jobs(reading: Reading, around: Around, now: float) -> tuple[Job, ...]:
    """All of them, an array as its jobs; what cannot be read is a job in state UNKNOWN, which counts as present."""
    arrays = {names.array_of(name) for name in (*reading.records, *reading.unreadable)}
    read = (_understood(name, record, around, now) for name, record in reading.records.items() if name not in arrays)
    unread = (_unknown(name, {}, around) for name in reading.unreadable if name not in arrays)
    return (*_first_of_arrays(read, reading.records), *unread)


def spent(jobs: Iterable[Job], records: Mapping[str, Record], owner: str) -> tuple[str, ...]:
    """Pilots that nobody needs any more: those that PBS runs for a second time, and those that it has suspended."""
    return tuple(
        job.id
        for job in jobs
        if job.pilot(owner) is not None
        and (job.state is JobState.SUSPENDED or (job.state is JobState.RUNNING and _runs(records[job.id]) > 1))
    )


def _understood(name: str, record: Record, around: Around, now: float) -> Job:
    try:
        return _job(name, record, around, now)
    except SchedulerError:
        return _unknown(name, record, around)


def _unknown(name: str, record: Record, around: Around) -> Job:
    return Job(
        id=name,
        name=record.get("Job_Name", ""),
        owner=record.get("Job_Owner", "").partition("@")[0],
        state=JobState.UNKNOWN,
        node_count=1,
        nodes=_where(record, around.hosts),
        comment=_tag(record),
    )


def _job(name: str, record: Record, around: Around, now: float) -> Job:
    name_of_queue = record.get("queue", "").partition("@")[0]
    queue = around.queues.get(name_of_queue)
    state = job_state(need(record, "job_state"))
    state = JobState.HELD if state is JobState.PENDING and name_of_queue in around.reserved else state  # the reservation claims the nodes
    placed = state in _PLACED
    told = _told_to_end(record, now) if state is JobState.RUNNING else None
    start = instant(record.get("stime" if placed else "estimated.start_time", ""))
    limit = duration(record["Resource_List.walltime"]) if "Resource_List.walltime" in record else None
    return Job(
        id=name,
        name=record.get("Job_Name", ""),
        owner=need(record, "Job_Owner").partition("@")[0],
        account=record.get("Account_Name", ""),
        partition=name_of_queue,
        state=state,
        nodes=_nodes(record, around.hosts) if placed or state is JobState.UNKNOWN else (),
        node_count=count(record.get("Resource_List.nodect", "1")),
        submitted=instant(record.get("qtime") or record.get("ctime", "")),
        eligible=instant(record.get("Execution_Time") or record.get("etime", "")),
        start=start,
        end=_killed(told, queue) if told is not None else _end(record, start, limit, now) if placed else None,
        time_limit=limit,
        priority=(queue.priority if queue else 0) * PRIORITIES + integer(record.get("Priority", "0")),
        planned_nodes=_on(names.vnodes(record.get("estimated.exec_vnode", "")), around.hosts) if state is JobState.PENDING else (),
        comment=_tag(record),
        preempted_at=told,
    )


def _nodes(record: Record, hosts: Mapping[str, str]) -> tuple[str, ...]:
    """Where it runs. Raises WrongNameError."""
    vnodes = names.vnodes(record.get("exec_vnode", ""))
    return _on(vnodes, hosts) if vnodes else names.hosts(record.get("exec_host", ""))


def _where(record: Record, hosts: Mapping[str, str]) -> tuple[str, ...]:
    """Where it runs, as far as that can be read."""
    try:
        return _nodes(record, hosts)
    except SchedulerError:
        return ()


def _on(vnodes: Iterable[str], hosts: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(hosts.get(each, each) for each in vnodes))


def _end(record: Record, start: float | None, limit: float | None, now: float) -> float | None:
    """By its start and walltime; when that has passed it was suspended for a while, and only what it used counts.

    MOM tells what it has used now and then, and ``mtime`` is when; another change moves ``mtime`` too, so it is not what we ask first.
    """
    if start is None or limit is None:
        return None
    told = instant(record.get("mtime", ""))
    if start + limit > now or told is None or "resources_used.walltime" not in record:
        return start + limit
    return max(start + limit, told + limit - duration(record["resources_used.walltime"]))


def _told_to_end(record: Record, now: float) -> float | None:
    """When a running job was told to end: the preemption that nothing else in its record shows."""
    return (instant(record.get("mtime", "")) or now) if record.get("substate") in RERUN else None


def _killed(told: float, queue: Queue | None) -> float:
    return told + (queue.kill_delay_seconds if queue else KILL_DELAY_SECONDS)


def _runs(record: Record) -> int:
    return integer(record.get("run_count", "0"))


def _tag(record: Record) -> str:
    """The comment of a pilot: a job's own comment is the scheduler's to write."""
    pilot = record.get(f"Variable_List.{PILOT}")
    return "" if pilot is None else PILOT_TAG + pilot


def _first_of_arrays(read: Iterable[Job], records: Mapping[str, Record]) -> Iterator[Job]:
    """All jobs, but of an array's waiting ones the first few, as many as may run; what is planned for it is planned for the first."""
    every = list(read)
    array = {job.id: names.array_of(job.id) for job in every}
    running = Counter(array[job.id] for job in every if job.nodes)
    waiting = Counter[str]()
    for job in every:
        whole = array[job.id]
        if whole is None or job.state is not JobState.PENDING:
            yield job
            continue
        waiting[whole] += 1
        most = integer(records.get(whole, {}).get("max_run_subjobs", "0"))
        if waiting[whole] <= min(ARRAY_JOBS, max(most - running[whole], 0) if most else ARRAY_JOBS):
            yield job if waiting[whole] == 1 else msgspec.structs.replace(job, start=None, planned_nodes=())
