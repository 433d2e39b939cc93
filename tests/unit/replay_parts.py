"""Small pools and trainers for replays."""

from __future__ import annotations

import random
from collections.abc import Iterable

from commensald.replay.simulate import Outcome, Rules, simulate
from commensald.replay.traces import Change, Trace
from commensald.replay.workload import Kind

LINEAR = ((1, 1.0), (64, 64.0))


def kind(**more: object) -> Kind:
    fields = {"name": "t", "curve": LINEAR, "samples": 1e9, **more}
    return Kind(**fields)  # type: ignore[arg-type]


def pool(end: float, *changes: tuple[float, str, str]) -> Trace:
    """``changes`` are (instant, nodes that join, nodes that leave), each node a letter."""
    return Trace(
        start=changes[0][0], end=end, changes=tuple(Change(at, frozenset(joined), frozenset(left)) for at, joined, left in changes)
    )


def played(trace: Trace, queue: Iterable[Kind], **rules: object) -> Outcome:
    return simulate(trace, queue, Rules(**rules), lambda: 0.0, lambda share: None)  # type: ignore[arg-type]


def synthetic(seed: int, nodes: int = 40, seconds: float = 20_000.0) -> Trace:
    """Idle fragments with a heavy tail, several nodes joining and leaving together, as in recorded clusters."""
    draw, now, changes = random.Random(seed), 0.0, []
    idle: frozenset[str] = frozenset()
    while now < seconds:
        claimed = frozenset(draw.sample(sorted(idle), draw.randint(0, len(idle))) if draw.random() < 0.4 else ())
        free = sorted({f"{place:06d}" for place in range(nodes)} - idle)
        joined = frozenset(draw.sample(free, min(len(free), int(draw.paretovariate(1.0)))))
        if joined or claimed or not changes:
            changes.append(Change(now, joined, claimed))
        idle = (idle | joined) - claimed
        now += 10.0 * draw.randint(1, 20)
    return Trace(start=0.0, end=seconds, changes=tuple(changes))
