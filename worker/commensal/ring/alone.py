"""The ring of one process: a laptop, or a plain batch job without a daemon."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch

from commensal import checkpoint, deadline, rendezvous
from commensal.checkpoint import SaveError, Snapshot
from commensal.messages import Generation, SettledStep
from commensal.ring import Place, Replica
from commensal.saver import Outcome, Saver

GENERATION = Generation(0, 0)
TIME_IS_UP = 124
"""Exit code when the job's end is near, as of timeout(1)."""
EXIT_SECONDS = 5.0
"""Kept for writing and ending, beside twice the time of the last save and of the last step."""


class Alone:
    """With a folder it resumes from the newest checkpoint, saves every ``checkpoint_seconds``, at the end, and before it has to go."""

    def __init__(self, folder: Path | None, checkpoint_seconds: float) -> None:
        if folder is not None:
            checkpoint.check_folder(folder)
            _refuse_a_second(folder)
        self._folder = folder
        self._interval = checkpoint_seconds
        self._saver = Saver(self._write, self._saved)
        self._due = time.monotonic() + checkpoint_seconds
        self._began: float | None = None
        self._longest = 0.0
        self._failed: Outcome | None = None
        self._on_disk: int | None = None

    def memory(self, words: int) -> torch.Tensor:
        return torch.zeros(words)

    def begin(self, replica: Replica) -> Place:
        """Raises SystemExit after a save when the process has been asked to end or its job's end is near."""
        now = time.monotonic()
        if self._began is None:
            self._resume(replica)
        else:
            self._longest = max(self._longest, now - self._began)
        self._began = now
        code = self._must_go()
        if code is not None:
            self.finish(replica)
            raise SystemExit(code)
        return Place(rank=0, size=1, speeds=(1.0,), generation=GENERATION)

    def reduce(self, low: int, high: int) -> None:
        """One member's sum is the sum."""

    def words(self) -> tuple[float, float, float]:
        return 0.0, 0.0, 0.0

    def wait(self) -> None:
        """Nothing to wait for."""

    def claim(self) -> None:
        """Nobody interrupts."""

    def worked(self, samples: int, seconds: float) -> None:
        """Nobody to share with."""

    def settle(self, replica: Replica) -> None:
        """A step of one member is settled when it is closed."""

    def settled(self, report: SettledStep) -> None:
        """Nobody to tell."""

    def measured(self, step: int, values: dict[str, float]) -> None:
        """Nobody to tell."""

    def depart(self) -> None:
        """:meth:`begin` ends the process by itself."""

    def abandon(self) -> None:
        """Nobody waits for this process."""

    def closed(self, replica: Replica, hold: float, stop: float, save: float) -> bool:
        return self._folder is not None and time.monotonic() >= self._due and not self._saver.busy

    def save(self, taken: Snapshot) -> None:
        self._due = time.monotonic() + self._interval
        self._saver.submit(taken)

    def finish(self, replica: Replica) -> None:
        """Save the last state. Raises SaveError."""
        self._saver.join()
        if self._folder is None or self._on_disk == replica.closed:
            return
        self._failed = None
        self.save(checkpoint.snapshot(replica))
        self._saver.join()
        if self._failed is not None and self._failed.error is not None:
            raise self._failed.error

    def _resume(self, replica: Replica) -> None:
        found = checkpoint.newest(self._folder) if self._folder is not None else None
        if found is not None:
            replica.load(*checkpoint.load(found))
            self._on_disk = found.step

    def _must_go(self) -> int | None:
        number = deadline.asked()
        if number is not None:
            return 128 + number
        seconds = deadline.remaining()
        near = seconds is not None and seconds < EXIT_SECONDS + 2 * (self._saver.seconds + self._longest)
        return TIME_IS_UP if near else None

    def _write(self, taken: Snapshot) -> None:
        assert self._folder is not None
        checkpoint.write_slice(taken, 0, 1, GENERATION, self._folder)
        checkpoint.try_manifest(self._folder, taken.step, GENERATION, 1)
        self._on_disk = taken.step

    def _saved(self, outcome: Outcome) -> None:
        if outcome.error is not None:
            self._failed = outcome
            kept = "there is no checkpoint yet" if self._on_disk is None else f"that of step {self._on_disk} is kept"
            print(f"commensal: {outcome.error}; {kept}", file=sys.stderr, flush=True)


def _refuse_a_second(folder: Path) -> None:
    """Raises SaveError where a ring trains: each would drop the other's checkpoints as old ones.

    A coordinator that does not answer is no leave to go ahead: its ring steps on without it.
    """
    there = rendezvous.announced(folder)
    if there is not None:
        raise SaveError(
            f"folder={str(folder)!r} belongs to training {there.training or '(unknown)'}, coordinated from {there.address}: "
            f"cancel it there, or give another folder; if that daemon or job is gone for good, remove {folder / rendezvous.FILE}"
        )
