"""Where records come from: pyslurm's helper while it can be used, the command line otherwise. Switching happens once and is said once."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence

from commensald.schedulers.runner import Runner
from commensald.schedulers.slurm import commands, qos, sdiag, settings, text
from commensald.schedulers.slurm.bindings import Bindings, BindingsError
from commensald.schedulers.slurm.records import Record

log = logging.getLogger(__name__)
_FIRST = {"nodes": "NodeName", "reservations": "ReservationName", "partitions": "PartitionName"}
_SHOW = {"jobs": commands.JOBS, "nodes": commands.NODES, "reservations": commands.RESERVATIONS, "partitions": commands.PARTITIONS}


class Queries:
    """Asks Slurm. Every method raises SchedulerError."""

    def __init__(self, runner: Runner, environment: Callable[[str | None], Mapping[str, str]], bindings: Bindings | None) -> None:
        """``environment`` gives that of a command for a format of times."""
        self._runner, self._environment, self._bindings = runner, environment, bindings
        self._starting, self._started = asyncio.Lock(), False
        self.calls = runner.calls

    async def config(self) -> Mapping[str, str]:
        """``scontrol show config``."""
        mark = _mark()
        answer = await self._run(commands.CONFIG, mark)
        return settings.parse(answer, mark)

    async def load(self) -> sdiag.Load:
        """``sdiag``."""
        return sdiag.parse(await self._run(commands.SDIAG, ""))

    async def qos_grace(self) -> Mapping[str, float]:
        """``sacctmgr show qos``: grace in seconds by name."""
        return qos.grace(await self._run(qos.COMMAND, ""))

    async def records(self, kind: str, config: Mapping[str, str]) -> list[Record]:
        """All jobs, nodes, reservations or partitions of a controller with this configuration."""
        if self._bindings is not None:
            try:
                return await self._by_bindings(self._bindings, kind, config["SLURM_VERSION"])
            except BindingsError as error:
                if self._bindings is not None:
                    log.info("%s; using Slurm's commands", error)
                self._bindings = None
        mark = _mark()
        answer = await self._run(_SHOW[kind], mark)
        return await asyncio.to_thread(_parse, kind, answer, mark, config.get("TrackWCKey", "no").lower() != "no")

    async def close(self) -> None:
        """End the helper."""
        if self._bindings is not None:
            await self._bindings.close()

    async def _by_bindings(self, bindings: Bindings, kind: str, version: str) -> list[Record]:
        async with self._starting:
            if not self._started:
                await bindings.start(version)
                self._started = True
                log.info("using pyslurm")
        self.calls["pyslurm"] += 1
        return await bindings.load(kind)

    async def _run(self, argv: Sequence[str], mark: str) -> str:
        return await self._runner.run(argv, self._environment(commands.time_format(mark)))


def _mark() -> str:
    return "~" + secrets.token_hex(6)


def _parse(kind: str, answer: str, mark: str, workload_keys: bool) -> list[Record]:
    if kind == "jobs":
        return list(text.jobs(answer, mark, workload_keys=workload_keys))
    return [{key: value.removesuffix(mark) for key, value in each.items()} for each in text.split(answer, _FIRST[kind])]
