"""What one training has achieved, as its lead reports it: settled steps, samples, figures, checkpoints."""

from __future__ import annotations

import logging
import time
from typing import Protocol

import msgspec

from commensal.messages import Measured, Report, Saved, SaveFailed, SettledStep
from commensald.coordinator.pace import Pace, Seen
from commensald.coordinator.saving import SaveClock
from commensald.events import Emit

log = logging.getLogger(__name__)


class Counts(Protocol):
    """Keeps settled counts beyond the daemon's life (the ledger)."""

    def record_settled(self, training: str, settled: int, samples: int) -> None: ...
    def settled(self, training: str) -> tuple[int, int]: ...
    def record_pace(self, training: str, seen: Seen) -> None: ...
    def pace(self, training: str) -> Seen: ...


class History:
    """The settled steps of one training, each told once, in order."""

    def __init__(self, training: str, counts: Counts, emit: Emit, now: float) -> None:
        self.training = training
        self._counts, self._emit = counts, emit
        self.settled, self.samples = counts.settled(training)
        seen = counts.pace(training)
        self.epoch, self.loss = seen.epoch, seen.loss
        self.batch: int | None = None
        self.measured: dict[str, float] = {}
        self.checkpoint, self.steps_lost = seen.checkpoint, seen.steps_lost
        self.checkpoint_error: str | None = None
        self._sizes: dict[int, int] = {}
        """Samples of the steps that no checkpoint holds yet."""
        self.clock = SaveClock(now)
        self.pace = Pace(seen)

    def report(self, report: Report) -> None:
        """Take what is new in a report; leads repeat what they do not know to have arrived."""
        fresh = [step for step in report.steps if step.step > self.settled]
        for step in fresh:
            self._settle(step)
        if fresh:
            self._counts.record_settled(self.training, self.settled, self.samples)

    def keep_pace(self) -> None:
        """Let what is known of its speed and course survive the daemon."""
        shown = {"epoch": self.epoch, "loss": self.loss, "checkpoint": self.checkpoint, "steps_lost": self.steps_lost}
        self._counts.record_pace(self.training, msgspec.structs.replace(self.pace.seen(), **shown))

    def _settle(self, step: SettledStep) -> None:
        at = time.time() - step.closed_ago
        self.pace.settled(step, at)
        self._emit(
            "step",
            at=at,
            training=self.training,
            step=step.step,
            generation=str(step.generation),
            epoch=step.epoch,
            samples=step.samples,
            loss=step.loss,
            batch=step.batch,
        )
        self.settled, self.epoch, self.loss, self.batch = step.step, step.epoch, step.loss, step.batch
        self.samples += len(step.samples)
        self._sizes[step.step] = len(step.samples)

    def began(self, closed: int) -> None:
        """A ring starts from the state after ``closed`` steps: settled steps beyond it are lost."""
        if closed >= self.settled:
            return
        self.samples -= sum(self._sizes.pop(step, 0) for step in range(closed + 1, self.settled + 1))
        self.steps_lost += self.settled - closed
        self.clock.losses += 1
        self._emit("steps.lost", training=self.training, first=closed + 1, last=self.settled)
        self.settled = closed
        self.pace.losses.back(closed)
        self.keep_pace()

    def measure(self, message: Measured) -> None:
        """Note figures of settled parameters."""
        self.measured = {**self.measured, **message.values}
        self._emit("measured", training=self.training, step=message.step, values=message.values)

    def saved(self, message: Saved, now: float) -> None:
        """Note a complete checkpoint."""
        self.checkpoint, self.checkpoint_error = message.step, None
        self._sizes = {step: size for step, size in self._sizes.items() if step > message.step}
        self.clock.saved(message.seconds, message.stall_seconds, now)
        self.keep_pace()
        self._emit(
            "checkpoint",
            training=self.training,
            step=message.step,
            seconds=message.seconds,
            stall_seconds=message.stall_seconds,
            size_bytes=message.size_bytes,
        )

    def save_failed(self, message: SaveFailed, now: float) -> None:
        """Note a save that failed; the checkpoint before it stands. Of several in a row the first is logged."""
        if self.checkpoint_error is None:
            log.warning("training %s: step %d was not saved: %s", self.training, message.step, message.error)
        self.checkpoint_error = message.error
        self.clock.failed(now)
        self._emit("checkpoint.failed", training=self.training, step=message.step, error=message.error)
