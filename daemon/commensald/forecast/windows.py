"""Windows: the nodes that pilots may have, one record each, and the table that shows them."""

from __future__ import annotations

import math
from functools import lru_cache

import msgspec


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """One node that is idle now or will be, and until when the scheduler lets a pilot have it.

    ``closes`` is the planned close: an upper bound, never a deadline by itself; ``None`` when nothing claims the node.
    ``claimed_by`` is the job or reservation behind it, ``reason`` says it in words.
    ``survival`` holds (seconds from now, probability that the node is still free then), ascending.
    """

    node: str
    opens: float
    closes: float | None
    reason: str
    claimed_by: str | None = None
    survival: tuple[tuple[float, float], ...] = ()
    held: bool = False
    """A pilot of ours is on the node already."""

    def open(self, now: float) -> bool:
        """Whether the node is free of primary jobs at ``now``."""
        return self.opens <= now

    def expected_seconds(self, now: float) -> float:
        """Mean time that the node stays free: the area under ``survival`` up to the planned close, at most its last point."""
        cut = math.inf if self.closes is None else max(self.closes - now, 0.0)
        return _area(self.survival, cut) if self.survival else cut


@lru_cache(maxsize=4_096)  # many nodes share a curve and a close
def _area(survival: tuple[tuple[float, float], ...], cut: float) -> float:
    """Under ``survival``, from (0, 1) to ``cut``."""
    area, before, height = 0.0, 0.0, 1.0
    for at, alive in survival:
        if at > cut:
            at, alive = cut, height + (alive - height) * (cut - before) / (at - before)
        area += (at - before) * (height + alive) / 2.0
        before, height = at, alive
    return area


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """All windows, as seen at ``made``."""

    windows: tuple[Window, ...]
    made: float


class WindowRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of ``commensal windows``: seconds are from now, ``None`` is without a planned end; ``alive_5min`` is a probability."""

    node: str
    opens_seconds: float
    closes_seconds: float | None
    alive_5min: float | None
    held: bool
    claimed_by: str | None
    reason: str


def rows(forecast: Forecast, now: float) -> tuple[WindowRow, ...]:
    """What ``commensal windows [--json]`` prints: open windows first, the longest of them on top."""
    ordered = sorted(forecast.windows, key=lambda each: (max(each.opens - now, 0.0), -_closes(each), each.node))
    return tuple(_row(each, now) for each in ordered)


def _row(window: Window, now: float) -> WindowRow:
    return WindowRow(
        node=window.node,
        opens_seconds=max(window.opens - now, 0.0),
        closes_seconds=None if window.closes is None else max(window.closes - now, 0.0),
        alive_5min=_alive(window.survival, 300.0),
        held=window.held,
        claimed_by=window.claimed_by,
        reason=window.reason,
    )


def _closes(window: Window) -> float:
    return math.inf if window.closes is None else window.closes


def _alive(survival: tuple[tuple[float, float], ...], seconds: float) -> float | None:
    """The last point at or before ``seconds``: Kaplan-Meier curves are steps."""
    return next((probability for at, probability in reversed(survival) if at <= seconds), None)
