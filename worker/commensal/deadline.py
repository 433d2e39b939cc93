"""How long this process may still run, and whether it has been asked to end. Installed once there is something to lose.

Sources: the job's end in the environment (``SLURM_JOB_END_TIME``, sbatch(1)), what the daemon says, and the grace that follows TERM
or USR1.
All are kept as instants of this machine's monotonic clock.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, TypeAlias

_Handler: TypeAlias = Callable[[int, FrameType | None], Any] | int | None

SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
GRACE_SECONDS = 30.0
"""Slurm's default KillWait; ``COMMENSAL_GRACE_SECONDS`` tells the cluster's own."""

_asked: list[tuple[int, float]] = []
_previous: dict[int, _Handler] = {}


class Deadline:
    """Pure: the earliest of the ends told so far, in monotonic seconds."""

    def __init__(self) -> None:
        self._ends: dict[str, float] = {}

    def tell(self, source: str, seconds: float, now: float) -> None:
        """``source`` says that ``seconds`` remain; it replaces what the same source said before."""
        self._ends[source] = now + seconds

    def remaining(self, now: float) -> float | None:
        """Seconds until the earliest end, 0 when it has passed; ``None`` when nobody has told one."""
        return max(0.0, min(self._ends.values()) - now) if self._ends else None


def from_environment(environment: Mapping[str, str], wall: float) -> float | None:
    """Seconds until the job's end by the environment, ``None`` when it does not say."""
    end = environment.get("SLURM_JOB_END_TIME", "")
    return float(end) - wall if end.isdigit() else None


_deadline = Deadline()
_lock = threading.Lock()


def install() -> None:
    """Handle TERM and USR1 by setting a flag, and read the job's end from the environment. Only in the main thread."""
    seconds = from_environment(os.environ, time.time())
    if seconds is not None:
        _deadline.tell("job", seconds, time.monotonic())
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            _previous.setdefault(number, signal.signal(number, _set_flag))


def uninstall() -> None:
    """The training has ended and nothing is left to save: give the signals back to whoever had them. Only in the main thread."""
    if threading.current_thread() is threading.main_thread():
        while _previous:
            signal.signal(*_previous.popitem())


def asked() -> int | None:
    """The first signal that asked this process to end, ``None`` so far."""
    return _asked[0][0] if _asked else None


def tell(seconds: float) -> None:
    """The daemon says that ``seconds`` remain. Any thread."""
    with _lock:
        _deadline.tell("daemon", seconds, time.monotonic())


def remaining() -> float | None:
    """Seconds until this process must have ended; ``None`` when no end is known. Any thread."""
    with _lock:
        if _asked:
            grace = float(os.environ.get("COMMENSAL_GRACE_SECONDS", GRACE_SECONDS))
            _deadline.tell("signal", grace, _asked[0][1])
        return _deadline.remaining(time.monotonic())


def _set_flag(number: int, frame: FrameType | None) -> None:
    if not _asked:
        _asked.append((number, time.monotonic()))
