"""What is told of a step once it is settled, and figures measured on settled parameters."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import torch
from torch import nn

from commensal.batch import Step
from commensal.data import Position
from commensal.messages import Generation, SettledStep
from commensal.randomness import preserved
from commensal.ring import Ring


class StepInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A settled step: its number (from 1), epoch (from 0), mean loss, samples, and whether this process leads the ring."""

    step: int
    epoch: int
    loss: float
    samples: int
    lead: bool


class Settling:
    """Holds the last closed step until it is settled, then tells the ring and the researcher's functions, once."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._functions: list[Callable[[StepInfo], object]] = []
        self._pending: Callable[[bool], tuple[SettledStep, StepInfo]] | None = None
        self._step = 0
        self.telling = False
        """The researcher's functions are running: the present parameters are settled."""

    def add(self, function: Callable[[StepInfo], object]) -> None:
        """Call ``function`` for each step settled from now on."""
        self._functions.append(function)

    def hold(self, position: Position, step: Step, loss: float, noise_scale: float | None) -> None:
        """``step`` has just closed; ``position`` is the one before it."""
        self._step, closed_at = position.closed + 1, time.monotonic()
        generation = step.place.generation or Generation(0, 0)

        def tell(lead: bool) -> tuple[SettledStep, StepInfo]:
            same: dict[str, Any] = {"step": position.closed + 1, "epoch": position.epoch, "loss": loss}
            ago = time.monotonic() - closed_at
            samples, indices = len(step.indices), tuple(step.indices.tolist())
            ring: dict[str, Any] = {"generation": generation, "nodes": step.place.size, "batch": step.batch}
            report = SettledStep(**same, **ring, samples=indices, closed_ago=ago, noise_scale=noise_scale)
            return report, StepInfo(**same, samples=samples, lead=lead)

        self._pending = tell

    def take(self, closed: int, lead: bool) -> None:
        """The ring has given the state after ``closed`` steps; another one than that of the step held is known to be settled up to it."""
        if closed != self._step:
            self.release(closed, lead)

    def release(self, closed: int, lead: bool) -> None:
        """The state after ``closed`` steps is settled: tell of the step held, or drop it if it is not part of that state.

        ``lead``: this member is the first of the ring now, which may have changed since the step closed; so each step has one lead.
        """
        tell, self._pending = self._pending, None
        if tell is None or self._step > closed:
            return
        report, info = tell(lead)
        self._ring.settled(report)
        self.telling = True
        try:
            for function in self._functions:
                function(info)
        finally:
            self.telling = False


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """eval() and no_grad(), with random states and the modules' modes given back."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad(), preserved():
            yield
    finally:
        for module, mode in modes:
            module.training = mode


def figures(result: object) -> dict[str, float] | None:
    """``result`` if it is a dictionary of named numbers."""
    if not isinstance(result, dict) or not result:
        return None
    numbers = all(isinstance(name, str) and isinstance(value, (int, float)) for name, value in result.items())
    return {name: float(value) for name, value in result.items()} if numbers else None
