"""Jobs: records to :class:`~commensald.cluster.Job`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from commensald.cluster import Job, JobState
from commensald.schedulers import SchedulerError
from commensald.schedulers.pbs import names
from commensald.schedulers.pbs.arrays import first_of_arrays
from commensald.schedulers.pbs.pilots import lives_again, tag
from commensald.schedulers.pbs.queues import KILL_DELAY_SECONDS, Queue
from commensald.schedulers.pbs.records import Reading, Record, count, integer, need
from commensald.schedulers.pbs.states import RERUN, job_state
from commensald.schedulers.pbs.times import duration, instant

PRIORITIES = 10_000.0
"""A step of a queue's priority outweighs all priorities of jobs (-1024 to 1023)."""
_PLACED = frozenset({JobState.RUNNING, JobState.SUSPENDED, JobState.COMPLETING})


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """What else a job's record means something by."""

    hosts: Mapping[str, str] = {}
    """By vnode."""
    host_cpus: int = 0
    """Of the usual host, 0 where nobody knows."""
    queues: Mapping[str, Queue] = {}
    reserved: frozenset[str] = frozenset()
    """Queues of reservations."""
    before: Mapping[str, Record] = {}
    """Records of pilots as they were read last: what one is that cannot be read now."""


def jobs(reading: Reading, around: Around, now: float) -> tuple[Job, ...]:
    """All of them, an array as its jobs; what cannot be read is a job in state UNKNOWN, which counts as present."""
    arrays = {names.array_of(name) for name in (*reading.records, *reading.unreadable)}
    read = (_understood(name, record, around, now) for name, record in reading.records.items() if name not in arrays)
    unread = (_unknown(name, around.before.get(name, {}), around) for name in reading.unreadable if name not in arrays)
    return (*first_of_arrays(read, reading.records), *unread)


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
        comment=tag(record),
    )


def _job(name: str, record: Record, around: Around, now: float) -> Job:
    name_of_queue = record.get("queue", "").partition("@")[0]
    queue = around.queues.get(name_of_queue)
    state = job_state(need(record, "job_state"))
    state = JobState.HELD if state is JobState.PENDING and name_of_queue in around.reserved else state  # the reservation claims the nodes
    placed = state in _PLACED
    nodes = _nodes(record, around.hosts) if placed or state is JobState.UNKNOWN else ()
    killed = _killed(record, queue, now) if state is JobState.RUNNING else None
    start = instant(record.get("stime" if placed else "estimated.start_time", ""))
    limit = duration(record["Resource_List.walltime"]) if "Resource_List.walltime" in record else None
    return Job(
        id=name,
        name=record.get("Job_Name", ""),
        owner=need(record, "Job_Owner").partition("@")[0],
        account=record.get("Account_Name", ""),
        partition=name_of_queue,
        state=state,
        nodes=nodes,
        node_count=len(nodes) or _hosts_needed(record, around.host_cpus),
        submitted=instant(record.get("qtime") or record.get("ctime", "")),
        eligible=instant(record.get("Execution_Time") or record.get("etime", "")),
        start=start,
        end=killed if killed is not None else _end(record, start, limit, now) if placed else None,
        time_limit=limit,
        priority=(queue.priority if queue else 0) * PRIORITIES + integer(record.get("Priority", "0")),
        planned_nodes=_on(names.vnodes(record.get("estimated.exec_vnode", "")), around.hosts) if state is JobState.PENDING else (),
        comment=tag(record),
        preempted_at=_changed(record, now) if killed is not None or lives_again(record, state) else None,
    )


def _hosts_needed(record: Record, host_cpus: int) -> int:
    """On how many hosts it fits: ``nodect`` counts chunks, of which several share a host unless they are to be scattered."""
    chunks, cpus = count(record.get("Resource_List.nodect", "1")), count(record.get("Resource_List.ncpus", "1"))
    place = record.get("Resource_List.place", "free").split(":")
    if "pack" in place:
        return 1
    if {"scatter", "vscatter"} & set(place) or not host_cpus:
        return max(chunks, 1)
    on_a_host = max(host_cpus * chunks // max(cpus, 1), 1)
    return max(-(-chunks // on_a_host), 1)


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


def _killed(record: Record, queue: Queue | None, now: float) -> float | None:
    """When a running job that was told to end is killed; nothing else in its record shows that it was preempted."""
    if record.get("substate") not in RERUN:
        return None
    return _changed(record, now) + (queue.kill_delay_seconds if queue else KILL_DELAY_SECONDS)


def _changed(record: Record, now: float) -> float:
    return instant(record.get("mtime", "")) or now
