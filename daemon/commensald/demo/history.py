"""The history of a training as its settled steps tell it: what counts in the end, what was lost, whether each sample was used once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from commensald.demo.record import Entry, Finished, Step, StepsLost


class History(msgspec.Struct, frozen=True, kw_only=True):
    """One training's final history, by ascending step."""

    training: str
    steps: tuple[Step, ...]
    lost: int
    """Steps that were once settled and are not in the final history."""
    repeated: int
    skipped: int


def generation_order(generation: str) -> tuple[int, int]:
    """("1.2") -> (1, 2): generations compare as pairs."""
    incarnation, number = generation.split(".")
    return int(incarnation), int(number)


def history(training: str, entries: Sequence[Entry]) -> History:
    """Read one training's history out of a log."""
    settled = _once(entry for entry in entries if isinstance(entry, Step) and entry.training == training)
    final = _final(settled)
    told = sum(entry.last - entry.first + 1 for entry in entries if isinstance(entry, StepsLost) and entry.training == training)
    finished = any(isinstance(entry, Finished) and entry.training == training for entry in entries)
    repeated, skipped = _uses(final, finished)
    return History(training=training, steps=tuple(final), lost=max(told, len(settled) - len(final)), repeated=repeated, skipped=skipped)


def _once(told: Iterable[Step]) -> list[Step]:
    """A daemon killed after it told of a step and before it noted that tells of it again: the same generation, number and samples."""
    return list({(step.generation, step.step, step.samples): step for step in told}.values())


def _final(settled: Sequence[Step]) -> list[Step]:
    """Drop each step that a later generation, which began at it or before it, has replaced."""
    kept: list[Step] = []
    lowest: int | None = None
    for step in sorted(settled, key=lambda step: (generation_order(step.generation), step.step), reverse=True):
        if lowest is None or step.step < lowest or step.generation == kept[-1].generation:
            kept.append(step)
            lowest = step.step if lowest is None else min(lowest, step.step)
    return sorted(kept, key=lambda step: step.step)


def _uses(final: Sequence[Step], finished: bool) -> tuple[int, int]:
    """(uses beyond the first, samples never used): per epoch, the latter only for epochs that are over."""
    epochs: dict[int, Counter[int]] = {}
    for step in final:
        epochs.setdefault(step.epoch, Counter()).update(step.samples)
    size = max((index for uses in epochs.values() for index in uses), default=-1) + 1
    over = [uses for epoch, uses in epochs.items() if finished or epoch < max(epochs)]
    repeated = sum(uses.total() - len(uses) for uses in epochs.values())
    return repeated, sum(size - len(uses) for uses in over)
