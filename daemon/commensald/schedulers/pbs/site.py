"""What of a site is read rarely: its server, its scheduler's settings and its queues."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

import msgspec

from commensald.schedulers import SchedulerError
from commensald.schedulers.pbs.queries import Queries
from commensald.schedulers.pbs.queues import Queue, of_pilots, queues
from commensald.schedulers.pbs.records import Record
from commensald.schedulers.runner import CommandTimeoutError

log = logging.getLogger(__name__)


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """One reading; ``pilots`` is the queue that pilots go to, ``sched`` is ``None`` where we may not see the scheduler's settings."""

    server: Record
    sched: Record | None
    queues: Mapping[str, Queue]
    pilots: Queue | None

    @property
    def version(self) -> str:
        """Of the server."""
        return self.server.get("pbs_version", "")


async def read(queries: Queries, queue: str | None) -> Site:
    """The site as it is now, for pilots of this queue (``None``: the server's default). Raises SchedulerError."""
    server, found, sched = await asyncio.gather(queries.server(), queries.queues(), _sched(queries))
    known = queues(found)
    return Site(server=server, sched=sched, queues=known, pilots=of_pilots(known, queue, server))


async def _sched(queries: Queries) -> Record | None:
    """``None`` where qmgr is missing or refused: then PBS's defaults are what we know of preemption."""
    try:
        return await queries.sched()
    except CommandTimeoutError:
        raise
    except SchedulerError as error:
        log.info("the scheduler's settings cannot be read: %s", error)
        return None
