"""decide(): one pure function from what is known to what is wanted.

No clock, no file, no socket: the daemon calls it on the real cluster, replay on a recorded one, the demo on an embedded one.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """A training as the allocator sees it; ``nodes`` are those its members hold now."""

    training: str
    owner: str
    min_nodes: int = 1
    max_nodes: int = 1
    weight: float = 1.0
    curve: tuple[tuple[int, float], ...] = ((1, 1.0),)
    """(nodes, samples per second), ascending; linear between, flat beyond the last point."""
    stall_seconds: float = 0.0
    warmup_seconds: float = 0.0
    nodes: frozenset[str] = frozenset()
    active: bool = True
    """False while paused, backing off or finished: it gets nothing."""


class Pilot(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot of ours that is pending or running; ``node`` is known once aimed or started."""

    uuid: str
    owner: str
    node: str | None
    running: bool
    ends: float | None = None
    preempted: bool = False
    """The scheduler has claimed its node: it is leaving and counts for nothing."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot to submit."""

    owner: str
    node: str | None
    time_limit: float | None
    reason: str


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted; the service acts on the difference to what is there."""

    submit: tuple[Request, ...] = ()
    cancel: tuple[str, ...] = ()
    """Uuids of pilots that nobody wants any more."""
    nodes: Mapping[str, frozenset[str]] = {}
    """Training -> the nodes its members should hold."""
