"""A trial job where pilots go: what its start and end cost, whether it sees the pilots' folder and reaches us, whether MPI works there."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from commensald.config import Config
from commensald.doctor.facts import Ring, Trial
from commensald.schedulers import PilotSpec, SchedulerError
from commensald.schedulers.runner import Runner
from commensald.schedulers.slurm import commands, script
from commensald.schedulers.slurm.names import submitted_id

LIMIT_SECONDS, PATIENCE_SECONDS, LOOK_SECONDS = 120.0, 90.0, 0.1
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)"
BODY = f"""date +%s.%N >"$2.began"
"$1" -c '{CONNECT}' "$3" "$4" 2>/dev/null && echo yes >"$2.reached"
"$1" -m commensal.ring.check >"$2.ring" 2>"$2.error"
date +%s.%N >"$2.ended"
"""
PARTS = ("began", "reached", "ring", "error", "ended", "log")


class Seen(msgspec.Struct, frozen=True):
    """What the scheduler shows of the trial job: its state, start (epoch seconds, something else before) and node."""

    state: str
    start: str
    node: str


class Jobs(Protocol):
    """The scheduler, as far as a trial needs it. Every method raises SchedulerError."""

    async def submit(self, name: str, argv: Sequence[str]) -> str:
        """Queue it as a pilot is submitted, but for the tag: a running daemon would take it for a pilot that it does not know."""

    async def seen(self, job: str) -> Seen | None:
        """The job as it is now; ``None`` once it has left the queue."""

    async def cancel(self, job: str) -> None:
        """End it."""


async def probe(config: Config, address: str, jobs: Jobs) -> Trial:
    """Submit the job, wait until its node is free again, and remove what it wrote. It tries to reach us at ``address``."""
    name = f"doctor-{uuid.uuid4().hex[:8]}"
    mark = Path(config.pilots.folder) / name
    try:
        mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        async with await asyncio.start_server(lambda _, writer: writer.close(), address, 0) as door:
            port = str(door.sockets[0].getsockname()[1])
            job = await jobs.submit(name, ("sh", "-c", BODY, "sh", config.pilots.python, str(mark), address, port))
            last, gone = await _follow(job, jobs)
        return trial(last, gone, {part: _read(mark.with_name(f"{name}.{part}")) for part in PARTS})
    except (SchedulerError, OSError) as error:
        return Trial(error=" ".join(str(error).split()))
    finally:
        shutil.rmtree(mark.with_name(f"{name}.ran"), ignore_errors=True)
        for part in PARTS:
            with contextlib.suppress(OSError):
                mark.with_name(f"{name}.{part}").unlink()


def trial(last: Seen | None, gone: float | None, wrote: Mapping[str, str]) -> Trial:
    """What the job's traces mean; ``gone`` is when its node was free again (``None``: not yet). Pure."""
    if last is None or gone is None:
        return Trial(error=f"the trial job did not {'start' if last is None else 'end'} within {PATIENCE_SECONDS:.0f} s")
    began, ended = _seconds(wrote["began"]), _seconds(wrote["ended"])
    if began is None or ended is None:
        return Trial(node=last.node, error=" ".join(wrote["log"].split()) or None, folder_seen=False)
    start = _seconds(last.start)
    return Trial(
        node=last.node,
        folder_seen=True,
        reached=bool(wrote["reached"]),
        start_seconds=None if start is None else max(began - start, 0.0),
        end_seconds=max(gone - ended, 0.0),
        ring=_ring(wrote["ring"], wrote["error"]),
    )


def specification(config: Config, name: str) -> PilotSpec:
    """As a pilot's."""
    pilots = config.pilots
    return PilotSpec(
        uuid=name,
        argv=(),
        folder=pilots.folder,
        time_limit=LIMIT_SECONDS,
        partition=pilots.partition,
        qos=pilots.qos,
        account=pilots.account,
    )


class SlurmJobs:
    """With sbatch and squeue."""

    def __init__(self, config: Config, runner: Runner, environment: Mapping[str, str]) -> None:
        self._config, self._runner, self._environment = config, runner, environment

    async def submit(self, name: str, argv: Sequence[str]) -> str:
        """See :class:`Jobs`."""
        untagged = [each for each in commands.sbatch(specification(self._config, name), LIMIT_SECONDS) if not each.startswith("--comment")]
        return submitted_id(await self._ask(untagged, script.pilot(name, argv, self._config.pilots.environment)))

    async def seen(self, job: str) -> Seen | None:
        """See :class:`Jobs`."""
        return seen(await self._ask(("squeue", "--noheader", "--format=%A|%T|%S|%N")), job)

    async def cancel(self, job: str) -> None:
        """See :class:`Jobs`."""
        await self._ask(commands.scancel([job]))

    async def _ask(self, argv: Sequence[str], stdin: str = "") -> str:
        return await self._runner.run(argv, self._environment, stdin)


async def _follow(job: str, jobs: Jobs) -> tuple[Seen | None, float | None]:
    """The job as it was seen last with a node, and when it had left the queue; it is cancelled when that takes too long."""
    last, give_up = None, time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up:
        found = await jobs.seen(job)
        if found is None:
            return last, time.time()
        last = found if found.node else last
        await asyncio.sleep(LOOK_SECONDS)
    await jobs.cancel(job)
    return last, None


def seen(rows: str, job: str) -> Seen | None:
    """The job among squeue's rows. Pure."""
    found = (row.split("|") for row in rows.splitlines())
    return next((Seen(*row[1:]) for row in found if row[0] == job and len(row) == 4), None)


def _ring(answer: str, error: str) -> Ring:
    try:
        return Ring(seconds=json.loads(answer)["seconds"])
    except (ValueError, KeyError):
        return Ring(error=" ".join(error.split()) or "no answer")


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _seconds(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
