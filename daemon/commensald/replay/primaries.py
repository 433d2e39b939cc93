"""A scheduler log (SWF) as a pool of idle nodes: its jobs run again on the embedded cluster's core, with a pilot on every idle node.

The machine begins with the jobs that the log says ran, and goes on by EASY backfill. A pilot starts the moment a node is idle, gets its
signal the moment a primary job is given the node, and is gone ``exit_seconds`` later; only then does that job start. By how much later,
the same jobs without any pilot tell. A job waits so long at most for pilots, but what it lost its successors lose too, and where a moment
decides whether a job can be backfilled, the order of jobs changes: single ones then start hours sooner or later.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from statistics import mean, median

import msgspec

from commensald.replay.logs import lines
from commensald.replay.report import Delays
from commensald.replay.simulate import Tick
from commensald.replay.traces import Change, Span, Trace
from commensald.schedulers.local import swf
from commensald.schedulers.local.core import Core
from commensald.schedulers.local.jobs import JobSpec, Policy
from commensald.schedulers.local.trace import Scale, workload
from commensald.schedulers.local.virtual import Behaviour, VirtualCluster, play
from commensald.schedulers.local.workload import WorkloadJob
from commensald.strict import InputError

POLICY = Policy(plan_depth=0)
"""Planned starts are for pilots with a time limit, and these have none."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What runs again: jobs by seconds since ``start`` (epoch), until ``end``, on so many nodes."""

    start: float
    end: float
    nodes: int
    jobs: tuple[WorkloadJob, ...]

    @property
    def seconds(self) -> float:
        """How long."""
        return self.end - self.start

    def cluster(self) -> VirtualCluster:
        """It, empty."""
        return VirtualCluster(Core([f"{place:06d}" for place in range(self.nodes)], POLICY))


def machine(path: Path, span: Span, nodes: int | None) -> Machine:
    """The log's machine, or one of ``nodes`` nodes of which each job has the share it had. Raises InputError."""
    log, epoch = _read(path), _epoch(path)
    scale = Scale(nodes=nodes or log.nodes, speedup=1.0)
    start, end = span.within(epoch + log.jobs[0].submit, epoch + log.jobs[-1].submit)
    jobs = workload(_with_waits(log, scale, start - epoch), scale, start - epoch)
    return Machine(start=start, end=end, nodes=scale.nodes, jobs=tuple(_whole(each) for each in jobs if each.at < end - start))


def run(machine: Machine, exit_seconds: float, tick: Tick) -> tuple[Trace, Delays | None]:
    """The nodes that pilots held, and what they cost the primary jobs that did not run from the beginning; ``None``: there are none.

    Both courses are followed until the last job has started, so that no job counts only when it was late.
    """
    alone = _starts(machine, lambda share: tick(share / 2))
    pilots = _Pilots(machine, exit_seconds)
    for now in pilots.moments():
        tick(0.5 + min(now / machine.seconds, 1.0) / 2)
        if now >= machine.seconds and alone.keys() <= pilots.started.keys():
            break
    late = sorted(pilots.started[job] - at for job, at in alone.items() if at > 0.0)
    delays = Delays(mean=mean(late), median=median(late), most=late[-1]) if late else None
    return Trace(start=machine.start, end=machine.end, changes=tuple(pilots.changes)), delays


def _starts(machine: Machine, tick: Tick) -> dict[str, float]:
    """When each job starts if there are no pilots."""
    cluster = machine.cluster()
    for now in play(cluster, machine.jobs):
        tick(min(now / machine.seconds, 1.0))
        if len(cluster.started) == len(machine.jobs):
            break
    return cluster.started


class _Pilots:
    """The same jobs, and a pilot on every idle node; ``changes`` of the pool are kept until the machine's end."""

    def __init__(self, machine: Machine, exit_seconds: float) -> None:
        self.changes = [Change(machine.start)]
        self._machine, self._cluster = machine, machine.cluster()
        self._leaves = Behaviour(exit_seconds=exit_seconds)
        self._names = (f"pilot-{number}" for number in count())
        self._pool: frozenset[str] = frozenset()

    @property
    def started(self) -> dict[str, float]:
        """Job -> when it started, pilots too."""
        return self._cluster.started

    def moments(self) -> Iterator[float]:
        """Each moment, once it was acted on."""
        if not self._machine.jobs or self._machine.jobs[0].at > 0:
            self._fill(0.0)
        for now in play(self._cluster, self._machine.jobs):
            self._fill(now)
            yield now

    def _fill(self, now: float) -> None:
        core = self._cluster.core
        for node in [each for each in core.nodes if each not in core.primary_on and each not in core.pilot_on]:
            name = next(self._names)
            self._cluster.submit(JobSpec(id=name, name=name, owner="", pilot=name, node=node), self._leaves, now)
        self._cluster.step(now)
        if now < self._machine.seconds:
            self._note(now)

    def _note(self, now: float) -> None:
        """Nodes belong to the pool until their pilot is told to go."""
        core = self._cluster.core
        pool = frozenset(node for node, pilot in core.pilot_on.items() if core.jobs[pilot].preempted_at is None)
        change = Change(self._machine.start + now, joined=pool - self._pool, left=self._pool - pool)
        if now == 0.0:
            self.changes[0] = change
        elif change.joined or change.left:
            self.changes.append(change)
        self._pool = pool


def _read(path: Path) -> swf.SwfLog:
    try:
        return swf.read(path)
    except swf.SwfError as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _epoch(path: Path) -> float:
    """Unix time of the log's second 0, by its header; logs without one, or with 0, count in unix time or from nowhere."""
    for _, line in lines(path):
        found = swf.HEADER.match(line)
        if found and found[1].lower() == "unixstarttime" and found[2].isdigit():
            return float(found[2])
        if not line.startswith(";"):
            break
    return 0.0


def _with_waits(log: swf.SwfLog, scale: Scale, until: float) -> swf.SwfLog:
    """A log that does not tell how long its jobs waited: as our own core would have had them wait, up to that second."""
    if any(job.wait is not None for job in log.jobs):
        return log
    cluster = Machine(start=0.0, end=until, nodes=scale.nodes, jobs=()).cluster()
    early = [_submitted(job, log, scale) for job in log.jobs if job.submit <= until]
    for now in play(cluster, early):
        if now >= until:
            break
    begun = [cluster.started.get(str(number), math.inf) for number in range(len(early))]
    known = (msgspec.structs.replace(job, wait=at - job.submit) for job, at in zip(log.jobs, begun, strict=False))
    return msgspec.structs.replace(log, jobs=(*known, *log.jobs[len(early) :]))


def _submitted(job: swf.SwfJob, log: swf.SwfLog, scale: Scale) -> WorkloadJob:
    times = {"at": job.submit, "seconds": scale.seconds(job), "time_limit": scale.time_limit(job)}
    return _whole(WorkloadJob(node_count=scale.node_count(job, log), name=str(job.id), owner="", **times))


def _whole(job: WorkloadJob) -> WorkloadJob:
    """One that ran beyond its limit in the log does so again: the scheduler is told the time it took."""
    return job if job.time_limit is None else msgspec.structs.replace(job, time_limit=max(job.time_limit, job.seconds))
