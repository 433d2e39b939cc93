"""PBS as a :class:`~commensald.schedulers.Scheduler`."""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
import time
from collections.abc import Sequence

import msgspec

from commensald.cluster import Facts, Job, JobState, Node, Snapshot
from commensald.schedulers import PilotSpec, SchedulerError
from commensald.schedulers.pbs import commands, script, settings
from commensald.schedulers.pbs.clock import Given, ahead_seconds
from commensald.schedulers.pbs.jobs import Around, jobs
from commensald.schedulers.pbs.names import submitted_id
from commensald.schedulers.pbs.nodes import hosts, nodes
from commensald.schedulers.pbs.pilots import of_pilots, spent
from commensald.schedulers.pbs.queries import Queries
from commensald.schedulers.pbs.records import Reading, Record
from commensald.schedulers.pbs.reservations import queues, reservations
from commensald.schedulers.pbs.site import Site, read
from commensald.schedulers.runner import CommandTimeoutError, Runner, pause_seconds

log = logging.getLogger(__name__)
SETTINGS_SECONDS = 300.0
"""Queues, server and scheduler settings are read again after so long."""
LONGEST_SECONDS = 7 * 86_400.0
"""A pilot always has a finite walltime: without one it could never start before a reservation."""
LEAST_SECONDS = 60.0
"""To less than this the scheduler does not shrink a pilot."""
SLOW_SECONDS = 1.0
PATIENCE = 4.0
"""A look that takes longer than that is followed by a rest of so many times its length."""
MOST_REST_SECONDS = 120.0


class PbsScheduler:
    """One PBS server, as the account we run as sees it. Pilots go to ``queue`` (``None``: the server's default)."""

    def __init__(
        self,
        *,
        queue: str | None = None,
        pbs_conf: str | None = None,
        path: str | None = None,
        timeout_seconds: float = 20.0,
        shrink_to_fit: bool = True,
    ) -> None:
        account = pwd.getpwuid(os.getuid())
        self._owner, self._home = account.pw_name, account.pw_dir
        self._queue, self._path, self._shrink = queue, path, shrink_to_fit
        self._environment = commands.environment(path, pbs_conf, account.pw_dir)
        self._runner = Runner(timeout_seconds)
        self._queries = Queries(self._runner, self._environment)
        self._site: Site | None = None
        self._site_read = 0.0
        self._nodes: tuple[Node, ...] = ()
        self._pilots: dict[str, Record] = {}
        self._given: Given | None = None
        self._ahead_seconds = 0.0
        self._failures = 0
        self._query_seconds = 0.0
        self._told_unknown: frozenset[str] = frozenset()

    async def snapshot(self) -> Snapshot:
        """The whole cluster now; three queries at once, and what is read rarely when it is due. Pilots that are spent are deleted."""
        try:
            seen = await self._snapshot()
        except SchedulerError:
            self._failures += 1
            raise
        self._failures = 0
        return seen

    def rest_seconds(self) -> float:
        """How long the server is to be left alone: longer the slower it is, and after each failure in a row."""
        if self._failures:
            return pause_seconds(self._failures)
        return min(self._query_seconds * PATIENCE, MOST_REST_SECONDS) if self._query_seconds > SLOW_SECONDS else 0.0

    async def submit(self, spec: PilotSpec) -> str:
        """Queue one pilot; one whose submission got no answer is looked for by its tag."""
        spec = msgspec.structs.replace(spec, partition=spec.partition or self._queue)
        argv = commands.qsub(spec, self._seconds(spec), commands.shape(self._nodes, spec.node), LEAST_SECONDS if self._shrink else None)
        before = time.time()
        try:
            job = submitted_id(await self._runner.run(argv, self._environment, self._script(spec)))
            self._given = Given(job=job, before=before, after=time.time())
            return job
        except CommandTimeoutError:
            found = await self._queries.job_of(spec.uuid)
            if found is None:
                raise
            return found

    async def cancel(self, ids: Sequence[str]) -> None:
        """End these jobs; ids that are gone are no error."""
        for lot in commands.batches(ids):
            try:
                await self._runner.run(commands.qdel(lot), self._environment)
            except SchedulerError as error:
                if not commands.only_gone(error.text):
                    raise

    async def close(self) -> None:
        """Nothing runs between two questions."""

    async def _snapshot(self) -> Snapshot:
        site, began, asked = await self._read_site(), time.monotonic(), time.time()
        reading, vnodes, reserved = await asyncio.gather(self._queries.jobs(), self._queries.nodes(), self._queries.reservations())
        self._query_seconds = time.monotonic() - began
        now = asked + self._clock(reading)
        self._nodes = nodes(vnodes, site.queues, site.pilots.name if site.pilots else None)
        around = Around(
            hosts=hosts(vnodes),
            host_cpus=commands.shape(self._nodes, None).cpus,
            queues=site.queues,
            reserved=queues(reserved),
            before=self._pilots,
        )
        seen = await asyncio.to_thread(jobs, reading, around, now)
        self._pilots = {name: self._pilots[name] for name in reading.unreadable if name in self._pilots} | of_pilots(reading.records)
        self._report_unknown(seen)
        await self._delete(spent(seen, reading.records, self._owner))
        return Snapshot(
            taken=now,
            nodes=self._nodes,
            jobs=seen,
            reservations=reservations(reserved, around.hosts),
            facts=self._facts(site, reading),
        )

    async def _read_site(self) -> Site:
        now = time.monotonic()
        if self._site is None or now - self._site_read > SETTINGS_SECONDS:
            self._site, self._site_read = await read(self._queries, self._queue), now
        return self._site

    def _clock(self, reading: Reading) -> float:
        """How far the server's clock is ahead, by the newest job that we gave it."""
        if self._given is not None and self._given.job in reading.records:
            ahead = ahead_seconds(self._given, reading.records[self._given.job])
            self._ahead_seconds = self._ahead_seconds if ahead is None else ahead
            self._given = None
        return self._ahead_seconds

    async def _delete(self, ids: Sequence[str]) -> None:
        """A pilot that lives again would never say hello, a suspended one sits on the memory of whoever suspended it."""
        if ids:
            log.info("deleting pilots that live again or are suspended: %s", ", ".join(ids))
            try:
                await self.cancel(ids)
            except SchedulerError as error:
                log.warning("deleting %s: %s", ", ".join(ids), error)

    def _seconds(self, spec: PilotSpec) -> float:
        pilots = self._site.pilots if self._site else None
        return commands.limit_seconds(spec.time_limit, pilots.most_seconds if pilots else None, LONGEST_SECONDS)

    def _script(self, spec: PilotSpec) -> str:
        own = {"HOME": self._home, "USER": self._owner, "LOGNAME": self._owner, "LANG": "C.UTF-8"}
        node = {} if spec.node is None else {"COMMENSAL_NODE": spec.node}
        try:
            environment = {**own, "PATH": commands.search_path(self._path), **node, **spec.environment}
            return script.pilot(spec.uuid, spec.folder, spec.argv, environment)
        except ValueError as error:
            raise SchedulerError("pilots.environment", str(error)) from error

    def _facts(self, site: Site, reading: Reading) -> Facts:
        measured = {f"calls_{name}": str(count) for name, count in self._runner.calls.items()}
        measured |= {
            "clock_ahead_seconds": f"{self._ahead_seconds:g}",
            "query_seconds": f"{self._query_seconds:.3f}",
            "jobs_repaired": str(len(reading.repaired)),
            "jobs_unreadable": str(len(reading.unreadable)),
        }
        return settings.facts(site.version, site.server, site.sched or {}, site.pilots, measured)

    def _report_unknown(self, seen: Sequence[Job]) -> None:
        """Jobs whose record or state nobody understands are said once."""
        unknown = frozenset(job.id for job in seen if job.state is JobState.UNKNOWN)
        if unknown - self._told_unknown:
            log.warning("jobs in a state that is not understood: %s", ", ".join(sorted(unknown - self._told_unknown)[:20]))
        self._told_unknown = unknown
