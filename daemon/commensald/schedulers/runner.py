"""The one place that starts a scheduler's commands: within a time limit, in their own session, killed and reaped when the limit is over."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from collections import Counter
from collections.abc import Mapping, Sequence

from commensald.schedulers import SchedulerError

ERROR_CHARACTERS = 500
FIRST_PAUSE_SECONDS = 5.0
MOST_PAUSE_SECONDS = 60.0


class CommandTimeoutError(SchedulerError):
    """A command did not end in time; what it was to do may have been done all the same."""


class Runner:
    """Runs commands and counts them; ``environment`` is all they get."""

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self.calls: Counter[str] = Counter()
        """How often each program was started: each start is one or two requests to the scheduler."""

    async def run(self, argv: Sequence[str], environment: Mapping[str, str], stdin: str = "") -> str:
        """What ``argv`` printed. Raises CommandTimeoutError, and SchedulerError with its own words when it failed."""
        self.calls[argv[0]] += 1
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise SchedulerError(f"{argv[0]}: cannot be started", error.strerror or "") from error
        try:
            async with asyncio.timeout(self._timeout_seconds):
                out, errors = await process.communicate(stdin.encode())
        except TimeoutError as error:
            raise CommandTimeoutError(f"{argv[0]}: no answer within {self._timeout_seconds:g} s") from error
        finally:
            await _end(process)
        if process.returncode != 0:
            raise SchedulerError(f"{argv[0]}: exit {process.returncode}", errors.decode(errors="replace")[-ERROR_CHARACTERS:].strip())
        return out.decode(errors="replace")


def pause_seconds(failures: int) -> float:
    """How long to leave a scheduler alone after so many failures in a row; with jitter, so that nobody asks in step."""
    return min(FIRST_PAUSE_SECONDS * 2.0 ** (failures - 1), MOST_PAUSE_SECONDS) * random.uniform(0.75, 1.25)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill what is left of it, with what it started."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
