"""Deaths at exact instants of a step, asked for by the environment: the member does them to itself."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import commensal


def install(training: commensal.Training) -> None:
    """Carry out those of FAULTS ("member:what") that are meant for this member, at the step whose number the file ARM holds."""
    for fault in os.environ.get("FAULTS", "").split():
        member, what = fault.split(":")
        if member == os.environ.get("COMMENSAL_MEMBER"):
            _arm(training, Path(os.environ["ARM"]), what)


def die() -> None:
    """SIGKILL, as the kernel or a scheduler would."""
    os.kill(os.getpid(), signal.SIGKILL)


def _arm(training: commensal.Training, armed: Path, what: str) -> None:
    ring = training._ring
    wait, closed, reduce = ring.wait, ring.closed, ring.reduce

    def due(step: int, *kinds: str) -> bool:
        return what in kinds and armed.exists() and int(armed.read_text()) == step

    def waiting() -> None:
        if due(training.closed + 1, "slow"):
            time.sleep(1.5)
        wait()
        if due(training.closed + 1, "delivered"):
            die()

    def closing(*arguments: object) -> bool:
        result = closed(*arguments)  # type: ignore[arg-type]
        if due(training.closed, "closed"):
            time.sleep(0.3)
            die()
        return result

    def reducing(low: int, high: int) -> None:
        reduce(low, high)
        if due(training.closed + 1, "reduce"):
            die()

    ring.wait, ring.closed, ring.reduce = waiting, closing, reducing  # type: ignore[method-assign]
