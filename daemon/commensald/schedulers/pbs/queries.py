"""What PBS is asked: jobs as JSON, and as text where that cannot be read; everything else as it comes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

import msgspec

from commensald.schedulers.pbs import answers, commands, text
from commensald.schedulers.pbs.attributes import PILOT
from commensald.schedulers.pbs.records import Reading, Record, UnreadableError
from commensald.schedulers.runner import Runner

log = logging.getLogger(__name__)


class Queries:
    """Asks PBS. Every method raises SchedulerError."""

    def __init__(self, runner: Runner, environment: Mapping[str, str]) -> None:
        self._runner, self._environment = runner, environment
        self._told: str | None = None

    async def jobs(self) -> Reading:
        """Every job, arrays with their jobs. Raises UnreadableError where neither JSON nor text comes to its end, or both say nothing."""
        reading = await asyncio.to_thread(_as_json, await self._ask(commands.JOBS))
        if reading.whole and not reading.unreadable:
            return reading
        self._say(reading)
        second = await asyncio.to_thread(text.jobs, await self._ask(commands.JOBS_AS_TEXT))
        if not reading.whole and not (second.whole and (second.records or second.unreadable)):
            raise UnreadableError("no whole answer of qstat, neither as JSON nor as text")
        return completed(reading, second)

    async def job_of(self, pilot: str) -> str | None:
        """The id of the job with this pilot's tag, even of one that has ended."""
        reading = await asyncio.to_thread(_as_json, await self._ask(commands.ENDED_TOO))
        return next((name for name, record in reading.records.items() if record.get(f"Variable_List.{PILOT}") == pilot), None)

    async def nodes(self) -> Mapping[str, Record]:
        """Every vnode."""
        return await self._others(commands.NODES, "nodes")

    async def queues(self) -> Mapping[str, Record]:
        """Every queue."""
        return await self._others(commands.QUEUES, "Queue")

    async def server(self) -> Record:
        """The server, which has one record."""
        found = await self._others(commands.SERVER, "Server")
        if not found:
            raise UnreadableError("qstat -B shows no server")
        return next(iter(found.values()))

    async def sched(self) -> Record:
        """The default scheduler's settings."""
        return text.attributes(await self._ask(commands.SCHED))

    async def reservations(self) -> Mapping[str, Record]:
        """Every reservation."""
        return text.reservations(await self._ask(commands.RESERVATIONS))

    async def _others(self, argv: Sequence[str], section: str) -> Mapping[str, Record]:
        return await asyncio.to_thread(answers.others, await self._ask(argv), section)

    async def _ask(self, argv: Sequence[str]) -> str:
        return await self._runner.run(argv, self._environment)

    def _say(self, reading: Reading) -> None:
        """Once for as long as it stays the same."""
        what = "was cut short" if not reading.whole else f"has jobs that cannot be read: {', '.join(reading.unreadable[:20])}"
        if what != self._told:
            log.warning("qstat's JSON %s; asking for text", what)
        self._told = what


def _as_json(answer: str) -> Reading:
    try:
        return answers.jobs(answer)
    except UnreadableError:
        return Reading(records={}, whole=False)


def completed(reading: Reading, second: Reading) -> Reading:
    """What the first look could not read, taken from the second; a job that a whole second look does not show has ended meanwhile."""
    if not reading.whole:
        return second
    present = {*second.records, *second.unreadable} if second.whole else set(reading.unreadable)
    found = {name: second.records[name] for name in reading.unreadable if name in second.records}
    return msgspec.structs.replace(
        reading,
        records={**reading.records, **found},
        repaired=(*reading.repaired, *found),
        unreadable=tuple(name for name in reading.unreadable if name not in found and name in present),
    )
