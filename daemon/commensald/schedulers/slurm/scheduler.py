"""Slurm as a :class:`~commensald.schedulers.Scheduler`."""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
import time
from collections.abc import Sequence

import msgspec

from commensald.cluster import Facts, Job, JobState, Snapshot
from commensald.schedulers import PilotSpec, SchedulerError
from commensald.schedulers.runner import CommandTimeoutError, Runner, pause_seconds
from commensald.schedulers.slurm import commands, script, sdiag, settings
from commensald.schedulers.slurm.bindings import Bindings
from commensald.schedulers.slurm.jobs import jobs
from commensald.schedulers.slurm.names import submitted_id
from commensald.schedulers.slurm.nodes import nodes
from commensald.schedulers.slurm.queries import Queries
from commensald.schedulers.slurm.reservations import reservations
from commensald.schedulers.slurm.site import Site, read

log = logging.getLogger(__name__)
SETTINGS_SECONDS = 300.0
"""Partitions, configuration and load are read again after so long."""
LONGEST_SECONDS = 7 * 86_400.0
"""A pilot always has a finite limit: without one it could never start before a maintenance reservation."""


class SlurmScheduler:
    """One Slurm cluster, as the account we run as sees it. Pilots go to ``partition`` (``None``: the cluster's default) with ``qos``."""

    def __init__(
        self,
        *,
        partition: str | None = None,
        qos: str | None = None,
        slurm_conf: str | None = None,
        path: str | None = None,
        timeout_seconds: float = 20.0,
        bindings: bool = True,
    ) -> None:
        self._partition, self._qos, self._conf, self._path = partition, qos, slurm_conf, path
        account = pwd.getpwuid(os.getuid())
        self._owner, self._home = account.pw_name, account.pw_dir
        self._runner = Runner(timeout_seconds)
        helper = Bindings(timeout_seconds, self._environment()) if bindings else None
        self._queries = Queries(self._runner, self._environment, helper)
        self._site: Site | None = None
        self._site_read = 0.0
        self._failures = 0
        self._query_seconds = 0.0
        self._told_unknown: frozenset[str] = frozenset()

    async def snapshot(self) -> Snapshot:
        """The whole cluster now; three queries at once, and what is read rarely when it is due."""
        try:
            seen = await self._snapshot()
        except SchedulerError:
            self._failures += 1
            raise
        self._failures = 0
        return seen

    def rest_seconds(self) -> float:
        """How long the controller is to be left alone: longer the slower it is, and after each failure in a row."""
        if self._failures:
            return pause_seconds(self._failures)
        return sdiag.rest_seconds(self._site.load if self._site else None, self._query_seconds)

    async def submit(self, spec: PilotSpec) -> str:
        """Queue one pilot; one whose submission got no answer is looked for by its tag."""
        spec = msgspec.structs.replace(spec, partition=spec.partition or self._partition)
        pilots = self._site.pilots if self._site else None
        seconds = commands.limit_seconds(spec.time_limit, pilots.most_seconds if pilots else None, LONGEST_SECONDS)
        try:
            body = script.pilot(spec.uuid, spec.argv, {**self._job_environment(), **spec.environment})
        except ValueError as error:
            raise SchedulerError("pilots.environment", str(error)) from error
        try:
            return submitted_id(await self._runner.run(commands.sbatch(spec, seconds), self._environment(), body))
        except CommandTimeoutError:
            found = commands.tagged(await self._runner.run(commands.own_jobs(self._owner), self._environment()), spec.uuid)
            if found is None:
                raise
            return found

    async def cancel(self, ids: Sequence[str]) -> None:
        """End these jobs; ids that are gone are no error."""
        for lot in commands.batches(ids):
            try:
                await self._runner.run(commands.scancel(lot), self._environment())
            except SchedulerError as error:
                if not commands.only_gone(error.text):
                    raise

    async def close(self) -> None:
        """End what was started to ask Slurm."""
        await self._queries.close()

    async def _snapshot(self) -> Snapshot:
        site = await self._read_site()
        began = time.monotonic()
        found = await asyncio.gather(*(self._queries.records(kind, site.config) for kind in ("jobs", "nodes", "reservations")))
        self._query_seconds = time.monotonic() - began
        pilots = site.pilots.name if site.pilots is not None else None
        seen_jobs, seen_nodes = await asyncio.to_thread(jobs, found[0]), await asyncio.to_thread(nodes, found[1], pilots)
        self._report_unknown(seen_jobs)
        return Snapshot(
            taken=time.time() + site.ahead_seconds,
            nodes=seen_nodes,
            jobs=seen_jobs,
            reservations=reservations(found[2]),
            facts=self._facts(site),
        )

    async def _read_site(self) -> Site:
        now = time.monotonic()
        if self._site is None or now - self._site_read > SETTINGS_SECONDS:
            self._site, self._site_read = await read(self._queries, self._partition, self._qos), now
        return self._site

    def _facts(self, site: Site) -> Facts:
        measured = {f"calls_{name}": str(count) for name, count in self._runner.calls.items()}
        measured |= {"clock_ahead_seconds": f"{site.ahead_seconds:g}", "query_seconds": f"{self._query_seconds:.3f}"}
        if site.load is not None and site.load.backfill_mean_seconds is not None:
            measured["backfill_mean_seconds"] = f"{site.load.backfill_mean_seconds:g}"
        return settings.facts(site.config, site.pilots, site.grace_seconds, measured)

    def _report_unknown(self, seen: Sequence[Job]) -> None:
        """Jobs whose record or state nobody understands are said once."""
        unknown = frozenset(job.id for job in seen if job.state is JobState.UNKNOWN)
        if unknown - self._told_unknown:
            log.warning("jobs in a state that is not understood: %s", ", ".join(sorted(unknown - self._told_unknown)[:20]))
        self._told_unknown = unknown

    def _environment(self, time_format: str | None = None) -> dict[str, str]:
        return commands.environment(self._path, self._conf, time_format)

    def _job_environment(self) -> dict[str, str]:
        path = commands.search_path(self._path)
        return {"HOME": self._home, "USER": self._owner, "LOGNAME": self._owner, "PATH": path, "LANG": "C.UTF-8"}
