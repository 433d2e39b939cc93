"""The course of a training's loss, in few points: what a goal is judged by and its model fitted to."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from statistics import fmean

import msgspec

MOST_POINTS = 128
RECENT_STEPS = 20
"""A goal is reached by the mean of so many steps: a single one may be lucky."""


class LossPoint(msgspec.Struct, frozen=True, array_like=True):
    """Means over some steps that follow each other."""

    step: float
    loss: float
    batch: float


class Losses:
    """Takes settled steps in order. Points are of equally many steps; when there are too many, neighbours become one."""

    def __init__(self, points: Iterable[LossPoint] = ()) -> None:
        self.points = list(points)
        self._width = 1 if len(self.points) < 2 else max(round(self.points[-1].step - self.points[-2].step), 1)
        self._open: list[LossPoint] = []
        self._recent: deque[float] = deque(maxlen=RECENT_STEPS)

    def add(self, point: LossPoint) -> None:
        """One more step."""
        self._recent.append(point.loss)
        self._open.append(point)
        if len(self._open) < self._width:
            return
        self.points.append(_mean(self._open))
        self._open.clear()
        if len(self.points) >= MOST_POINTS:
            self.points = [_mean(pair) for pair in zip(self.points[::2], self.points[1::2], strict=False)]
            self._width *= 2

    def back(self, step: int) -> None:
        """Steps after ``step`` are lost."""
        self.points = [point for point in self.points if point.step <= step]
        self._open.clear()
        self._recent.clear()

    @property
    def recent(self) -> float | None:
        """The mean loss of the last steps, once there are RECENT_STEPS."""
        return fmean(self._recent) if len(self._recent) == RECENT_STEPS else None


def _mean(points: Iterable[LossPoint]) -> LossPoint:
    some = tuple(points)
    return LossPoint(fmean(each.step for each in some), fmean(each.loss for each in some), fmean(each.batch for each in some))
