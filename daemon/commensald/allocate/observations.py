"""What a running training shows of itself: the times of its steps, and what a change of its members costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

import msgspec


class Closed(msgspec.Struct, frozen=True, kw_only=True):
    """A settled step: when it closed (any clock, in seconds), in which ring, of how many nodes and samples."""

    at: float
    ring: str
    nodes: int
    batch: int


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """One step: its nodes, its samples, how long it took."""

    nodes: int
    batch: int
    step_seconds: float


class Rescale(msgspec.Struct, frozen=True, kw_only=True):
    """One change of members, or what is known of it.

    ``stall_seconds``: by how much the first step of the new ring came later than such a step takes. ``warmup_seconds``: for each newcomer,
    from the moment its node was given to the training until the first step that it closed.
    """

    stall_seconds: float | None = None
    warmup_seconds: tuple[float, ...] = ()


def steps(closes: Iterable[Closed]) -> tuple[Observation, ...]:
    """Durations of steps, from consecutive closes of one ring; the first of a ring tells nothing of its duration."""
    return tuple(
        Observation(nodes=now.nodes, batch=now.batch, step_seconds=now.at - before.at)
        for before, now in pairwise(closes)
        if now.ring == before.ring and now.at > before.at
    )


def stalls(closes: Sequence[Closed]) -> tuple[float, ...]:
    """Seconds lost at each change of the ring; a ring that closed only one step is not counted, since its pace is not known."""
    paces = {ring: median(times) for ring, times in _durations(closes).items()}
    return tuple(
        max(now.at - before.at - paces[now.ring], 0.0) for before, now in pairwise(closes) if now.ring != before.ring and now.ring in paces
    )


def _durations(closes: Iterable[Closed]) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {}
    for before, now in pairwise(closes):
        if now.ring == before.ring:
            taken.setdefault(now.ring, []).append(now.at - before.at)
    return taken


def learn_rescale(observed: Sequence[Rescale], stall_seconds: float = 0.0, warmup_seconds: float = 0.0) -> tuple[float, float]:
    """(stall, warm-up) in seconds: the medians of what was observed; what was not seen yet is taken as given."""
    stalled = [each.stall_seconds for each in observed if each.stall_seconds is not None]
    warmed = [seconds for each in observed for seconds in each.warmup_seconds]
    return median(stalled) if stalled else stall_seconds, median(warmed) if warmed else warmup_seconds
