"""Finding the facts out: Slurm's commands, this host, and a ring of two processes."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import psutil

from commensald.assembly import own_address
from commensald.config import Config
from commensald.doctor import replies
from commensald.doctor.facts import Association, Backfill, Host, Qos, Ring, Site, Slurm, Trial
from commensald.doctor.probe import probe
from commensald.ledger import file_system, on_network
from commensald.schedulers import PilotSpec, SchedulerError
from commensald.schedulers.slurm import commands, settings, text
from commensald.schedulers.slurm.partitions import partitions
from commensald.schedulers.slurm.records import Record
from commensald.schedulers.slurm.runner import Runner
from commensald.service import policy
from commensald.strict import InputError

RING_SECONDS, CONNECT_SECONDS = 60.0, 2.0
MOST_TRIED = 16
"""Nodes to which a connection is tried."""
PROBE = PilotSpec(uuid="doctor", argv=("true",), folder="/tmp", time_limit=60.0)


async def gather(config: Config, owner: str, *, ring: bool, trial: bool) -> Site:
    """Everything that the checks want to know; ``trial`` submits a job. Raises InputError."""
    host = await _host(config, ring=ring)
    if config.scheduler.kind != "slurm":
        return Site(config=config, owner=owner, host=host)
    asked = _Questions(config, owner)
    try:
        slurm, nodes = await asked.slurm()
    except SchedulerError as error:
        return Site(config=config, owner=owner, host=host, silence=str(error))
    unreachable, tried = await _unreachable(nodes)
    hosts = {name: _resolved(where[0]) for name, where in nodes.items()}
    return Site(
        config=config,
        owner=owner,
        host=msgspec.structs.replace(host, unreachable=unreachable, tried=tried),
        slurm=msgspec.structs.replace(slurm, hosts=hosts),
        standing=policy(config).standing,
        trial=await asked.trial(host.address) if trial else None,
    )


class _Questions:
    """What Slurm is asked, each command once."""

    def __init__(self, config: Config, owner: str) -> None:
        self._config, self._owner = config, owner
        self._runner = Runner(config.scheduler.command_seconds)
        self._environment = commands.environment(config.scheduler.path, config.scheduler.slurm_conf, commands.time_format(""))

    async def slurm(self) -> tuple[Slurm, dict[str, tuple[str, int]]]:
        """All that Slurm says, and where its nodes listen. Raises SchedulerError where it says nothing."""
        before = time.time()
        found = settings.parse(await self._ask(commands.CONFIG), "")
        ahead = (settings.taken(found) or before) - before
        rows = list(text.split(await self._ask(commands.PARTITIONS), "PartitionName"))
        nodes = list(text.split(await self._ask(commands.NODES), "NodeName"))
        qos, own = await self._accounting(found)
        slurm = Slurm(
            version=found["SLURM_VERSION"],
            settings=found,
            partitions=partitions(rows),
            oversubscribe={row["PartitionName"]: row.get("OverSubscribe", "NO") for row in rows},
            qos=qos,
            associations=own,
            operator=await self._operator(found),
            backfill=await self._backfill(),
            clock_ahead_seconds=skew(ahead, time.time() - before),
            refusal=await self._refusal(),
        )
        return slurm, listening(nodes, found.get("SlurmdPort", ""))

    async def trial(self, address: str) -> Trial:
        """A job where pilots go."""
        return await probe(self._config, address, self._runner, self._environment)

    async def _ask(self, argv: Sequence[str], stdin: str = "") -> str:
        return await self._runner.run(argv, self._environment, stdin)

    async def _accounting(self, found: Mapping[str, str]) -> tuple[tuple[Qos, ...] | None, tuple[Association, ...] | None]:
        try:
            qos = replies.qos(await self._ask(("sacctmgr", "--parsable2", "show", "qos")))
            rows = await self._ask(("sacctmgr", "--parsable2", "show", "assoc"))
        except SchedulerError:
            return None, None
        return qos, replies.associations(rows, self._owner, found.get("ClusterName", ""), self._config.pilots.account)

    async def _operator(self, found: Mapping[str, str]) -> bool:
        if self._owner in ("root", found.get("SlurmUser", "").partition("(")[0]):
            return True
        try:
            return replies.operator(await self._ask(("sacctmgr", "--parsable2", "show", "user", self._owner)))
        except SchedulerError:
            return False

    async def _backfill(self) -> Backfill | None:
        try:
            return replies.backfill(await self._ask(commands.SDIAG))
        except SchedulerError:
            return None

    async def _refusal(self) -> str | None:
        pilots = self._config.pilots
        spec = msgspec.structs.replace(PROBE, partition=pilots.partition, qos=pilots.qos, account=pilots.account)
        try:
            await self._ask((*commands.sbatch(spec, 60.0), "--test-only"), "#!/bin/sh\ntrue\n")
            return None
        except SchedulerError as error:
            return replies.refusal(error.text or str(error))


async def _host(config: Config, *, ring: bool) -> Host:
    folder = _existing(Path(config.pilots.folder))
    address = config.daemon.bind or _address()
    return Host(
        address=address,
        folder_type=file_system(folder),
        folder_shared=on_network(folder),
        addresses=frozenset(
            each.address for entries in psutil.net_if_addrs().values() for each in entries if each.family == socket.AF_INET
        ),
        pyslurm=_installed("pyslurm"),
        ring=await _form(config, address) if ring else None,
    )


async def _form(config: Config, address: str) -> Ring:
    """A ring of two processes, formed by the pilots' own python in their own environment."""
    argv = (config.pilots.python, "-m", "commensal.ring.check", "--address", address)
    try:
        answer = await Runner(RING_SECONDS).run(argv, {**os.environ, **config.pilots.environment})
        return Ring(seconds=json.loads(answer)["seconds"])
    except SchedulerError as error:
        return Ring(error=" ".join((error.text or str(error)).split()))
    except (ValueError, KeyError) as error:
        return Ring(error=f"unreadable answer: {error}")


async def _unreachable(nodes: Mapping[str, tuple[str, int]]) -> tuple[tuple[str, ...], int]:
    tried = dict(list(nodes.items())[:MOST_TRIED])
    answers = await asyncio.gather(*(_connects(host, port) for host, port in tried.values()))
    return tuple(name for name, reached in zip(tried, answers, strict=True) if not reached), len(tried)


async def _connects(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


def listening(nodes: Sequence[Record], usual_port: str) -> dict[str, tuple[str, int]]:
    """Where each node that should answer listens."""
    found = {each["NodeName"]: replies.address(each, usual_port) for each in nodes if answers(each.get("State", ""))}
    return {name: where for name, where in found.items() if where is not None}


def answers(state: str) -> bool:
    return not any(word in state for word in ("DOWN", "FUTURE", "POWER", "*", "UNKNOWN"))


def skew(ahead: float, took: float) -> float:
    """Seconds by which the controller's clock, told in whole seconds, is certainly ahead (or behind, if negative)."""
    return max(ahead - took, 0.0) + min(ahead + 1.0, 0.0)


def _address() -> str:
    try:
        return own_address()
    except InputError:
        return "127.0.0.1"


def _resolved(host: str) -> str:
    try:
        return socket.gethostbyname(host)
    except OSError:
        return host


def _existing(folder: Path) -> Path:
    """The folder, or the one that it would be made in."""
    return next(each for each in (folder, *folder.parents) if each.exists())


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
