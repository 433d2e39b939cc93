"""Forecast: from a snapshot to windows, the holes a pilot may fill."""

from __future__ import annotations

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


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """All windows, as seen at ``made``."""

    windows: tuple[Window, ...]
    made: float
