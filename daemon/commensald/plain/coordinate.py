"""The coordinator of one training, for as long as its job lasts."""

from __future__ import annotations

import asyncio
import logging
import socket
import tempfile
import time
from collections.abc import Collection
from enum import IntEnum
from pathlib import Path

from commensald.config import Config
from commensald.coordinator.rendezvous import read
from commensald.coordinator.server import Coordinator
from commensald.keys import public_key
from commensald.plain.book import Book
from commensald.strict import InputError
from commensald.trainings import TrainingSpec

log = logging.getLogger(__name__)
LOOK_SECONDS = 0.25
FAREWELL_SECONDS = 5.0
RETURN_SECONDS = 5.0
"""Members of an earlier coordinator's ring that steps on come back within this: nobody is sent away before."""
TOLD = frozenset({"generation", "halt", "checkpoint", "checkpoint.failed", "steps.lost", "member.lost", "measured", "training.finished"})


class Outcome(IntEnum):
    """How a task ended, as its exit code."""

    DONE = 0
    FAILED = 1
    ASKED_TO_LEAVE = 75
    """EX_TEMPFAIL (sysexits.h): there is more to train; the job script queues itself again."""


def chosen(held: Collection[str], free: Collection[str], spec: TrainingSpec) -> frozenset[str]:
    """The nodes that train: those that members hold and all others that are there, up to the most; none below the fewest. Pure."""
    nodes = [*sorted(held), *sorted(set(free) - set(held))]
    return frozenset(nodes[: spec.max_nodes]) if len(nodes) >= spec.min_nodes else frozenset()


class Coordination:
    """The one training and its coordinator; ``array``: its members are in other jobs too. Raises InputError when another one answers."""

    def __init__(self, spec: TrainingSpec, config: Config, address: str, secrets: Path, *, array: bool) -> None:
        folder = Path(spec.folder)
        refuse_a_second(folder)
        self._spec, self._folder, self._array, self._failure = spec, folder, array, ""
        book = Book(folder)
        known = book.generation(spec.name) is not None
        self._settled_at = time.monotonic() + (RETURN_SECONDS if known else 0.0)
        self._rings = Coordinator(folder=secrets, ledger=book, emit=tell, limits=config.ring, bind=address, pilot_folder=folder)
        self._rings.on_failure = self._failed

    async def run(self, leave: asyncio.Event) -> Outcome:
        """Until the training has finished or failed, or ``leave`` is set and nobody of this job is left."""
        await self._rings.start()
        try:
            self._rings.admit(self._spec, public_key(self._folder))
            outcome = await self._look(leave)
            if outcome is not Outcome.ASKED_TO_LEAVE:
                await self._farewell()
                self._rings.retire(self._spec.name)
            return outcome
        finally:
            await self._rings.close()

    async def _look(self, leave: asyncio.Event) -> Outcome:
        while True:
            status = self._rings.status(self._spec.name)
            if self._failure and not status.members:
                log.error("the script failed: %s", self._failure)
                return Outcome.FAILED
            if status.finished and not status.members:
                log.info("finished: %d steps, %d samples in this job", status.settled, status.samples)
                return Outcome.DONE
            if leave.is_set() and (self._array or not status.members):
                return Outcome.ASKED_TO_LEAVE
            if time.monotonic() >= self._settled_at:
                held, there = self._rings.nodes(self._spec.name), self._rings.pilots().values()
                self._rings.assign({self._spec.name: chosen(held, there, self._spec)})
            await asyncio.sleep(LOOK_SECONDS)

    def _failed(self, training: str, tail: str) -> None:
        self._failure = self._failure or tail
        self._rings.stop(training, "its script failed")

    async def _farewell(self) -> None:
        """Let all launchers go, and wait until they have."""
        give_up = time.monotonic() + FAREWELL_SECONDS
        while self._rings.pilots() and time.monotonic() < give_up:
            for pilot in self._rings.pilots():
                self._rings.dismiss(pilot, "the job is over")
            await asyncio.sleep(LOOK_SECONDS)


async def coordinate(spec: TrainingSpec, config: Config, address: str, leave: asyncio.Event, *, array: bool) -> Outcome:
    """Coordinate ``spec`` at ``address``. The secret key lives and dies in a folder of this node's own."""
    with tempfile.TemporaryDirectory(prefix="commensal-") as secrets:
        return await Coordination(spec, config, address, Path(secrets), array=array).run(leave)


def refuse_a_second(folder: Path) -> None:
    """Raises InputError when what ``coordinator.json`` names still answers: a daemon, or another job."""
    there = read(folder)
    if there is None:
        return
    host, _, port = there.address.removeprefix("tcp://").rpartition(":")
    with socket.socket() as probe:
        probe.settimeout(2.0)
        if probe.connect_ex((host, int(port))) == 0:
            raise InputError(f"{folder}: is coordinated already, at {there.address}: cancel that job, or the training in that daemon")


def tell(kind: str, **fields: object) -> None:
    """The events worth a line in a job's log."""
    if kind in TOLD:
        log.info("%s %s", kind, " ".join(f"{name}={_short(value)}" for name, value in fields.items() if name not in ("at", "training")))


def _short(value: object) -> str:
    """Members are told by their nodes, figures with as many digits as a person reads."""
    if isinstance(value, list | tuple) and all(isinstance(each, dict) for each in value):
        return ",".join(str(each.get("node", each)) for each in value)
    if isinstance(value, dict):
        return ",".join(f"{name}:{_short(each)}" for name, each in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)
