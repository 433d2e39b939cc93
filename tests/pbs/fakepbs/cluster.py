"""A whole PBS without clock and processes: requests and ends of jobs in, orders for MOM out. Pure; ``now`` is an argument."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from commensald.schedulers.local.jobs import Action, Drop, JobSpec, Kill, Reason, RefusedError, Signal, Start
from fakepbs import errors, record
from fakepbs.core import PbsCore
from fakepbs.errors import PbsError
from fakepbs.options import Asked
from fakepbs.record import Record
from fakepbs.site import Site

Verb = Literal["run", "term", "kill", "stop", "resume"]


class Order(msgspec.Struct, frozen=True):
    """What MOM is to do with a job."""

    verb: Verb
    job: str


class Cluster:
    """``jobs`` are those in the queue, subjobs of arrays among them, ``history`` those that have finished."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.core = PbsCore(list(site.nodes))
        self.jobs: dict[str, Record] = {}
        self.history: dict[str, Record] = {}
        self.node_comments: dict[str, str] = {}
        self._sequence = 0
        self._orders: list[Order] = []

    # Requests

    def next_id(self) -> int:
        """The sequence number of a job or reservation."""
        self._sequence += 1
        return self._sequence - 1

    def submit(self, asked: Asked, script: str, owner: str, origin: Mapping[str, str], now: float) -> Record:
        """Queue a job, or an array of them. Raises PbsError."""
        queue = asked.queue or self.site.default_queue
        if queue not in self.site.queues:
            raise PbsError(errors.UNKNOWN_QUEUE)
        if not self.site.queues[queue].enabled:
            raise PbsError(errors.QUEUE_DISABLED)
        for host in set(asked.hosts) - self.site.nodes.keys():
            raise PbsError(errors.NO_NODE, host)
        number = self.next_id()
        job = Record(id=self._id(number, asked), asked=asked, owner=owner, queue=queue, origin=origin, script=script, created=now)
        job.modified, job.eligible = now, None if asked.hold else now
        if asked.hold:
            job.state, job.substate = "H", record.HELD
        self.jobs[job.id] = job
        job.children = list(self._subjobs(job, number))
        self.jobs |= {each.id: each for each in job.children}
        for each in job.children or [job]:
            if not asked.hold:
                self._queue(each, now)
        return job

    def delete(self, job: str, now: float) -> None:
        """``qdel``: SIGTERM at once, SIGKILL after ``kill_delay``; one that waits is gone at once. Raises PbsError."""
        found = self.find(job)
        for each in found.children or [found]:
            each.deleted, each.requeue = True, False
            if each.state == "S":
                self._orders.append(Order("kill", each.id))
            elif each.id in self.core.jobs:
                self.core.cancel(each.id, now)
            else:
                self._finish(each, now)

    def rerun(self, job: str, now: float) -> None:
        """``qrerun``: as a preemption by requeue does. Raises PbsError."""
        found = self.find(job)
        if not found.asked.rerunable:
            raise PbsError(errors.NOT_RERUNABLE, found.id)
        if found.state != "R":
            raise PbsError(errors.BAD_STATE, found.id)
        found.requeue, found.substate = True, record.RERUN
        self.core.cancel(found.id, now)

    def release(self, job: str, now: float) -> None:
        """``qrls``. Raises PbsError."""
        found = self.find(job)
        if found.state == "H":
            found.state, found.substate, found.eligible = "Q", record.QUEUED, now
            self._queue(found, now)

    def find(self, job: str) -> Record:
        """The job in the queue with this id. Raises PbsError."""
        name = job if "." in job else f"{job}.{self.site.server}"
        if name in self.jobs:
            return self.jobs[name]
        raise PbsError(errors.FINISHED if name in self.history else errors.UNKNOWN_JOB, name)

    def offline(self, node: str, *, offline: bool) -> None:
        """``pbsnodes -o`` and ``-r``: no new job gets there, those that run stay. Raises PbsError."""
        if node not in self.site.nodes:
            raise PbsError(errors.NO_NODE, node)
        (self.core.down.add if offline else self.core.down.discard)(node)

    # MOM's word

    def began(self, job: str, session: int) -> None:
        """Its first process runs."""
        self.jobs[job].session = session

    def ended(self, job: str, exit_status: int, now: float) -> None:
        """Its last process is gone."""
        found = self.jobs[job]
        found.obit, found.modified, found.exit_status = now, now, exit_status
        if found.state == "S":
            self.core.cancel(job, now)
            return
        self.core.ended(job)
        if found.requeue:
            found.requeue, found.state, found.substate, found.nodes = False, "Q", record.QUEUED, ()
            found.started = None
            self._queue(found, now, first=True)
        else:
            self._finish(found, now)

    # The scheduler

    def advance(self, now: float) -> list[Order]:
        """One scheduling cycle."""
        again = True
        while again:
            again = False
            for action in self.core.advance(now):
                again |= self._follow(action, now)
        orders, self._orders = self._orders, []
        return orders

    def next_event(self, now: float) -> float | None:
        """When to call ``advance`` again unless something happens before."""
        return self.core.next_event(now)

    def estimates(self, now: float) -> dict[str, tuple[float, tuple[str, ...]]]:
        """Job -> planned start and nodes, of the top jobs."""
        planned = [p for p in self.core.plan(now) if p.start > now]
        return {p.job: (p.start, p.nodes) for p in planned[: self.site.backfill_depth or 1]}

    def _follow(self, action: Action, now: float) -> bool:
        """Carry out what the core wants; tells whether nodes came free by that."""
        job = self.jobs[action.job]
        job.modified = now
        match action:
            case Start():
                self._start(job, action, now)
            case Signal(reason=Reason.PREEMPT):
                return self._preempt(job, now)
            case Signal():
                self._orders.append(Order("term", job.id))
            case Kill():
                self._orders.append(Order("kill", job.id))
            case Drop():
                self._finish(job, now)
        return False

    def _start(self, job: Record, action: Start, now: float) -> None:
        resumed = job.state == "S"
        job.state, job.substate, job.nodes = "R", record.RUNNING, action.nodes
        job.limit = None if action.end is None else action.end - now
        if not resumed:
            job.started, job.run_count, job.exit_status = now, job.run_count + 1, None
            job.comment = f"Job run at {_day(now)} on {job.exec_vnode}"
        self._orders.append(Order("resume" if resumed else "run", job.id))
        self._began_array(job, now)

    def _preempt(self, job: Record, now: float) -> bool:
        method = self._method(job.asked) or "R"  # none: the settings have changed since it was queued
        if method == "S":
            job.state, job.substate = "S", record.SUSPENDED
            self._orders.append(Order("stop", job.id))
            self.core.ended(job.id)
            self._queue(job, now, first=True)
            return True
        job.requeue = method in ("R", "C")
        job.deleted = method == "D"
        job.substate = record.RERUN if job.requeue else job.substate
        self._orders.append(Order("kill" if method == "C" else "term", job.id))
        return False

    def _method(self, asked: Asked) -> str | None:
        """The first of ``preempt_order`` that works for this job. C leaves what a checkpoint_abort script does: killed, and requeued."""
        useless = ("R" if not asked.rerunable else "") + ("C" if asked.checkpoint == "n" else "")
        return next((letter for letter in self.site.preempt_order if letter not in useless), None)

    def _queue(self, job: Record, now: float, *, first: bool = False) -> None:
        """Hand it to the core; one that can never run waits for ever, with a comment."""
        asked, express = job.asked, self.site.express(job.queue)
        preemptible = not express and self._method(asked) is not None
        self.core.kill_delay[job.id] = self.site.kill_delay(job.queue)
        self.core.pinned[job.id] = job.nodes if job.state == "S" else asked.hosts
        if asked.shrink is not None and job.state != "S":
            self.core.shrink[job.id] = asked.shrink
        spec = JobSpec(
            id=job.id,
            name=asked.name,
            owner=job.owner,
            node_count=asked.node_count,
            time_limit=asked.shrink[0] if asked.shrink else asked.walltime,
            tier=self.site.queues[job.queue].priority or 0,
            priority=float(asked.priority),
            pilot=job.id if preemptible else None,
        )
        try:
            self.core.submit(spec, now)
        except RefusedError:
            job.comment = "Can Never Run: Not enough total nodes available"
            return
        if first:
            self.core.put_first(job.id)

    def _finish(self, job: Record, now: float) -> None:
        job.finished, job.modified, job.substate = now, now, record.DELETED if job.deleted else record.FINISHED
        job.comment = f"{job.comment or 'Not Running'} and {'terminated' if job.deleted else 'finished'}"
        if job.parent is None:
            job.state = "F"
            self.history[job.id] = self.jobs.pop(job.id)
            return
        job.state = "X"
        parent = self.jobs[job.parent]
        if all(child.state == "X" for child in parent.children):
            for child in parent.children:
                self.history[child.id] = self.jobs.pop(child.id)
            self._finish(parent, now)

    def _began_array(self, job: Record, now: float) -> None:
        if job.parent is not None and self.jobs[job.parent].state == "Q":
            parent = self.jobs[job.parent]
            parent.state, parent.substate, parent.started = "B", record.BEGUN, now
            parent.comment = f"Job Array Began at {_day(now)}"

    def _id(self, number: int, asked: Asked) -> str:
        return f"{number}{'[]' if asked.array else ''}.{self.site.server}"

    def _subjobs(self, job: Record, number: int) -> Iterator[Record]:
        first, last = job.asked.array or (1, 0)
        for index in range(first, last + 1):
            child = Record(
                id=f"{number}[{index}].{self.site.server}",
                asked=job.asked,
                owner=job.owner,
                queue=job.queue,
                origin=job.origin,
                script=job.script,
                created=job.created,
            )
            child.parent, child.index, child.modified, child.eligible = job.id, index, job.modified, job.eligible
            yield child


def _day(now: float) -> str:
    return time.strftime("%a %b %d at %H:%M", time.localtime(now))
