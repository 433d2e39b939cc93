"""Saves in the background: one at a time, never in the way of a step."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec

from commensal.checkpoint import SaveError, Snapshot


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a save ended: what it took, or why it failed."""

    step: int
    seconds: float
    stall_seconds: float
    error: SaveError | None = None


class Saver:
    """Runs ``write`` in a thread for each snapshot and hands the outcome to ``done``, in that thread."""

    def __init__(self, write: Callable[[Snapshot], None], done: Callable[[Outcome], None]) -> None:
        self._write = write
        self._done = done
        self._thread: threading.Thread | None = None
        self.seconds = 0.0
        """How long the last save took."""

    @property
    def busy(self) -> bool:
        """A save is going on."""
        return self._thread is not None and self._thread.is_alive()

    def submit(self, taken: Snapshot) -> None:
        """Save it; waits for the save before it."""
        self.join()
        self._thread = threading.Thread(target=self._run, args=(taken,), name="commensal-save")
        self._thread.start()

    def join(self) -> None:
        """Wait for the save in progress."""
        if self._thread is not None:
            self._thread.join()

    def _run(self, taken: Snapshot) -> None:
        began, error = time.monotonic(), None
        try:
            self._write(taken)
        except SaveError as caught:
            error = caught
        self.seconds = time.monotonic() - began
        self._done(Outcome(step=taken.step, seconds=self.seconds, stall_seconds=taken.stall_seconds, error=error))
