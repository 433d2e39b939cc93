"""Our pilots: in the ledger first, then in the queue; reconciled at each snapshot."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Sequence

import msgspec

from commensald import limits, reconcile
from commensald.cluster import Job, Snapshot
from commensald.config import PilotsSection
from commensald.decision import Pilot, Request
from commensald.events import Emit
from commensald.ledger import Ledger, PilotRecord
from commensald.schedulers import PilotSpec, Scheduler, SchedulerError

log = logging.getLogger(__name__)
MOST_WAIT_SECONDS = 60.0


class Fleet:
    """Submits, cancels and keeps account of the pilots of ``owner``."""

    def __init__(self, config: PilotsSection, ledger: Ledger, scheduler: Scheduler, owner: str, emit: Emit) -> None:
        self._config, self._ledger, self._scheduler, self._owner, self._emit = config, ledger, scheduler, owner, emit
        self._records = {each.uuid: each for each in ledger.open_pilots()}
        self._seen = {each.uuid for each in self._records.values() if each.job is not None}
        self._closed = list(ledger.closed_pilots(time.time() - limits.KEEP_SECONDS))
        self._absences: dict[str, int] = {}
        self._cancelled: set[str] = set()
        self._preempted: set[str] = set()
        self._refusals = 0
        self._not_before = 0.0
        self._began = time.time()
        self.jobs: dict[str, Job] = {}
        """The queue's view, by uuid."""

    def reconfigure(self, config: PilotsSection) -> None:
        """Pilots submitted from now on are as ``config`` says."""
        self._config = config

    def pilots(self) -> tuple[Pilot, ...]:
        """As decide() takes them."""
        return reconcile.pilots(self._records.values(), self.jobs, self._seen, self._cancelled)

    def records(self) -> tuple[PilotRecord, ...]:
        """All that may still be in the queue."""
        return tuple(self._records.values())

    def history(self) -> tuple[PilotRecord, ...]:
        """All of the last day, open and closed: what the limits are worked out from."""
        oldest = time.time() - limits.KEEP_SECONDS
        self._closed = [each for each in self._closed if (each.closed or 0.0) >= oldest]
        return (*self._records.values(), *self._closed)

    async def reconcile(self, snapshot: Snapshot, asked: float, greeted: Callable[[str], bool]) -> tuple[str, ...]:
        """Learn job ids and starts, close what is gone and give its uuids, cancel what serves nobody.

        ``greeted`` tells whether a pilot has said hello to this daemon.
        """
        self.jobs = reconcile.ours(snapshot, self._owner)
        ended = reconcile.ended(snapshot, self._owner)
        self._note({**ended, **self.jobs})
        self._absences = reconcile.absences(self._records.values(), self.jobs, self._absences, asked)
        gone = tuple(name for name, times in self._absences.items() if times >= reconcile.ABSENCES or name in ended)
        for name in gone:
            self._close(name, greeted(name))
        await self._clear(snapshot)
        return gone

    def _note(self, jobs: dict[str, Job]) -> None:
        for each in list(self._records.values()):
            if each.uuid in jobs:
                self._found(each, jobs[each.uuid])
        for each in reconcile.begun(self._records.values(), jobs):
            self._records[each.uuid] = each
            self._ledger.start_pilot(each.uuid, each.node, each.started or 0.0)
        self._preempted |= {name for name, job in jobs.items() if job.preempted_at is not None and name in self._records}

    async def _clear(self, snapshot: Snapshot) -> None:
        """Cancel pilots that the ledger does not know, that wait for a second life, or that have outlived their grace."""
        unknown = reconcile.strangers(self.jobs, self._records)
        if unknown:
            log.warning("cancelling pilots that the ledger does not know: %s", ", ".join(unknown))
            await self._cancel_jobs(unknown)
        overdue = reconcile.overdue(self.jobs, snapshot.facts.grace_seconds, snapshot.taken)
        for name in overdue:
            log.warning("pilot %s (job %s) still runs after its grace: cancelling it", name, self.jobs[name].id)
        self._cancelled.difference_update(overdue)  # once more each time: a primary job waits for its node
        await self.cancel([*overdue, *reconcile.requeued(self._records.values(), self.jobs)])

    async def submit(self, requests: Sequence[Request], grace_seconds: float) -> None:
        """Ask for pilots, as many at once as the configuration allows; after a refusal wait, longer each time."""
        if time.monotonic() < self._not_before:
            return
        batch = requests[: self._config.submissions_per_cycle]
        taken = await asyncio.gather(*(self._submit(each, grace_seconds) for each in batch))
        if batch:
            self._refusals = 0 if all(taken) else self._refusals + 1
            self._not_before = time.monotonic() + (min(2.0 ** (self._refusals - 1), MOST_WAIT_SECONDS) if self._refusals else 0.0)

    async def cancel(self, uuids: Sequence[str]) -> None:
        """End these pilots; one whose job is not known yet is cancelled once it is."""
        jobs = {each: self._job_id(each) for each in uuids if each not in self._cancelled}
        known = {each: job for each, job in jobs.items() if job is not None}
        if known and await self._cancel_jobs(list(known.values())):
            self._cancelled.update(known)

    async def _submit(self, request: Request, grace_seconds: float) -> bool:
        name = str(uuid.uuid4())
        record = PilotRecord(
            uuid=name, owner=self._owner, node=request.node, job=None, time_limit=request.time_limit, submitted=time.time()
        )
        self._ledger.add_pilot(record)
        self._records[name] = record
        self._emit("pilot.submitted", pilot=name, node=request.node, reason=request.reason, time_limit=request.time_limit)
        try:
            job = await self._scheduler.submit(self._spec(name, request, grace_seconds))
            self._ledger.queue_pilot(name, job)
            self._records[name] = msgspec.structs.replace(record, job=job)
            return True
        except SchedulerError as error:
            log.warning("pilot %s on %s: %s", name, request.node, error)
            return False  # it may have been taken all the same: the next snapshots tell

    def _spec(self, name: str, request: Request, grace_seconds: float) -> PilotSpec:
        config = self._config
        return PilotSpec(
            uuid=name,
            argv=(config.python, "-m", "commensal.pilot", "--folder", config.folder, "--pilot", name),
            folder=config.folder,
            node=request.node,
            time_limit=request.time_limit,
            environment={"COMMENSAL_GRACE_SECONDS": str(grace_seconds), **config.environment},
            partition=config.partition,
            qos=config.qos,
            account=config.account,
        )

    def _job_id(self, name: str) -> str | None:
        """As the queue shows it, or as the scheduler told at submission."""
        if name in self.jobs:
            return self.jobs[name].id
        return self._records[name].job if name in self._records else None

    async def _cancel_jobs(self, ids: Sequence[str]) -> bool:
        try:
            await self._scheduler.cancel(ids)
            return True
        except SchedulerError as error:
            log.warning("cancelling %s: %s", ", ".join(ids), error)
            return False

    def _found(self, record: PilotRecord, job: Job) -> None:
        self._seen.add(record.uuid)
        if record.job is None:
            self._records[record.uuid] = msgspec.structs.replace(record, job=job.id)
            self._ledger.queue_pilot(record.uuid, job.id)

    def _close(self, name: str, greeted: bool) -> None:
        now, asked = time.time(), name in self._cancelled or name in self._preempted
        pilot = self._records.pop(name)
        # Whom an earlier daemon has heard we do not know.
        died = pilot.submitted >= self._began and limits.died_at_once(pilot, now, greeted=greeted, asked=asked)
        reason = limits.DIED_AT_ONCE if died else "absent from the queue"
        if died:
            log.warning("pilot %s (job %s) died at once on %s; see %s/%s.log", name, pilot.job, pilot.node, self._config.folder, name)
        self._ledger.close_pilot(name, reason, now)
        self._closed.append(msgspec.structs.replace(pilot, closed=now, reason=reason))
        for names in (self._seen, self._cancelled, self._preempted):
            names.discard(name)
