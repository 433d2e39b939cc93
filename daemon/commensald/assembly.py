"""The daemon put together: everything opened in order, and closed again."""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
import signal
import socket
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from commensald.config import Config
from commensald.control import Control
from commensald.coordinator.server import Coordinator
from commensald.events import Emit, EventLog
from commensald.keys import public_key
from commensald.ledger import Ledger
from commensald.notify import notify
from commensald.schedulers import Scheduler
from commensald.schedulers.local.client import LocalScheduler
from commensald.schedulers.pbs.scheduler import PbsScheduler
from commensald.schedulers.slurm.scheduler import SlurmScheduler
from commensald.service import Service
from commensald.strict import InputError

log = logging.getLogger(__name__)


async def serve(config: Config, read_again: Callable[[], Config]) -> None:
    """Run until SIGTERM or SIGINT; SIGHUP takes over what ``read_again`` gives.

    Raises InputError before anything has started when something cannot be used.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as opened:
        ledger = Ledger(Path(config.daemon.state))
        opened.callback(ledger.close)
        service = await _open(config, ledger, opened)
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload, service, read_again)
        notify("READY=1", "STATUS=ready")
        log.info("ready: life %d, socket %s", ledger.incarnation(), config.daemon.socket)
        await service.run(stop)
        notify("STOPPING=1")


def reload(service: Service, read_again: Callable[[], Config]) -> None:
    """Read the configuration again, and tell systemd when it begins and ends (sd_notify(3)); a bad one changes nothing."""
    notify("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")
    try:
        kept = service.reconfigure(read_again())
        log.info("configuration read again%s", f"; a new start is needed for {', '.join(kept)}" if kept else "")
    except InputError as error:
        log.error("configuration not taken over: %s", error)
    notify("READY=1")


async def _open(config: Config, ledger: Ledger, opened: AsyncExitStack) -> Service:
    emit = _events(config, opened)
    coordinator = Coordinator(
        folder=Path(config.daemon.state),
        ledger=ledger,
        emit=emit,
        limits=config.ring,
        bind=config.daemon.bind or own_address(),
        pilot_folder=_pilot_folder(config),
    )
    owner = pwd.getpwuid(os.getuid()).pw_name
    batch = scheduler(config)
    opened.push_async_callback(batch.close)
    service = Service(config, ledger, batch, coordinator, owner, emit)
    coordinator.on_change, coordinator.on_failure = service.wake.set, service.training_failed
    control = Control(Path(config.daemon.socket), service.answer)
    await control.start()
    opened.push_async_callback(control.close)
    await coordinator.start()
    opened.push_async_callback(coordinator.close)
    service.start()
    emit("daemon.started", incarnation=ledger.incarnation())
    return service


def scheduler(config: Config) -> Scheduler:
    """The one that is configured."""
    asked = config.scheduler
    if asked.kind == "local":
        return LocalScheduler(Path(asked.socket))
    if asked.kind == "pbs":
        return PbsScheduler(
            queue=config.pilots.partition,
            pbs_conf=asked.pbs_conf,
            path=asked.path,
            timeout_seconds=asked.command_seconds,
            shrink_to_fit=asked.shrink_to_fit,
        )
    return SlurmScheduler(
        partition=config.pilots.partition,
        qos=config.pilots.qos,
        slurm_conf=asked.slurm_conf,
        path=asked.path,
        timeout_seconds=asked.command_seconds,
        bindings=asked.pyslurm,
    )


def own_address() -> str:
    """The address of the interface that leads out: what compute nodes can reach. No packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # TEST-NET-1 (RFC 5737)
            return str(probe.getsockname()[0])
        except OSError as error:
            raise InputError("daemon.bind: this host has no way out, so its address must be given") from error


def _pilot_folder(config: Config) -> Path:
    """Made with its key pair if missing. Raises InputError."""
    folder = Path(config.pilots.folder)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"pilots.folder: {folder}: {error.strerror}") from error
    public_key(folder)
    return folder


def _events(config: Config, opened: AsyncExitStack) -> Emit:
    if config.daemon.events is None:
        return lambda kind, **fields: None
    try:
        events = EventLog(Path(config.daemon.events))
    except OSError as error:
        raise InputError(f"daemon.events: {config.daemon.events}: {error.strerror}") from error
    opened.callback(events.close)
    return events.emit
