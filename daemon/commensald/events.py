"""The event log: one JSON line an event, from which every figure that we show can be recomputed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

Event = Mapping[str, object]
Emit = Callable[..., None]
"""``emit(kind, **fields)``; ``at`` (epoch seconds) may be given when the thing happened earlier."""


class EventLog:
    """Appends events to a file, whole lines, flushed at once: a reader may follow it while it grows."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._encoder = msgspec.json.Encoder()

    def emit(self, kind: str, **fields: object) -> None:
        """Write one event."""
        at = fields.pop("at", None)
        event = {"at": time.time() if at is None else at, "kind": kind, **fields}
        self._file.write(self._encoder.encode(event) + b"\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
