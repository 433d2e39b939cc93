"""Finding out about this host: its addresses and folders, whether it reaches the nodes, whether MPI forms a ring."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path

import msgspec
import psutil

from commensald.assembly import own_address
from commensald.config import Config
from commensald.doctor.facts import Host, Ring
from commensald.ledger import file_system, on_network
from commensald.schedulers import SchedulerError
from commensald.schedulers.runner import Runner
from commensald.strict import InputError

RING_SECONDS, CONNECT_SECONDS = 60.0, 2.0
MOST_TRIED = 16


async def look(config: Config, *, ring: bool) -> Host:
    """All but the way to the nodes."""
    folder = _existing(Path(config.pilots.folder))
    address = config.daemon.bind or _address()
    found = (each for entries in psutil.net_if_addrs().values() for each in entries)
    return Host(
        address=address,
        folder_type=file_system(folder),
        folder_shared=on_network(folder),
        addresses=frozenset(each.address for each in found if each.family == socket.AF_INET),
        pyslurm=_installed("pyslurm"),
        ring=await _form(config, address) if ring else None,
    )


def spread(nodes: Mapping[str, tuple[str, int]]) -> dict[str, tuple[str, int]]:
    """As many nodes as a connection is tried to, from all over the cluster. Pure."""
    return dict(list(nodes.items())[:: max(len(nodes) // MOST_TRIED, 1)][:MOST_TRIED])


async def reach(host: Host, nodes: Mapping[str, tuple[str, int]]) -> Host:
    """Try to connect to where these nodes listen."""
    answers = await asyncio.gather(*(_connects(where, port) for where, port in nodes.values()))
    unreachable = tuple(name for name, reached in zip(nodes, answers, strict=True) if not reached)
    return msgspec.structs.replace(host, unreachable=unreachable, tried=len(nodes))


def resolved(name: str) -> str:
    """The address of a name, or the name where it has none."""
    try:
        return socket.gethostbyname(name)
    except OSError:
        return name


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


async def _connects(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


def _address() -> str:
    try:
        return own_address()
    except InputError:
        return "127.0.0.1"


def _existing(folder: Path) -> Path:
    """The folder, or the one that it would be made in."""
    return next(each for each in (folder, *folder.parents) if each.exists())


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
