"""A pool of idle nodes over time: which nodes join it and leave it, and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import msgspec

from commensald.strict import InputError


class Change(msgspec.Struct, frozen=True):
    """Nodes that join and leave the pool at one instant (epoch seconds)."""

    at: float
    joined: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """A pool from ``start`` to ``end`` (epoch seconds); the first change, at ``start``, brings the nodes that are idle then."""

    start: float
    end: float
    changes: tuple[Change, ...]

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.start

    def sizes(self) -> Iterator[tuple[float, int]]:
        """(seconds, nodes): how long the pool had each size, in order."""
        size, ends = 0, [*(each.at for each in self.changes[1:]), self.end]
        for change, until in zip(self.changes, ends, strict=True):
            size += len(change.joined) - len(change.left)
            yield until - change.at, size

    @property
    def equivalent_nodes(self) -> float:
        """N_eq: the mean size of the pool over time."""
        return sum(seconds * size for seconds, size in self.sizes()) / self.seconds


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """What a recorded cluster says of its idle nodes: (epoch seconds, node, whether it is idle from then on), ascending."""

    begins: float
    ends: float
    events: Sequence[tuple[float, str, bool]]

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes, in the order in which they are first named."""
        return tuple(dict.fromkeys(node for _, node, _ in self.events))


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """What of a log is replayed: from ``begin`` (``None``: where it begins) for ``hours`` (``None``: to its end)."""

    begin: float | None = None
    hours: float | None = None

    def within(self, begins: float, ends: float) -> tuple[float, float]:
        """Start and end in a log of that reach. Raises InputError when it does not hold them."""
        start = begins if self.begin is None else self.begin
        end = ends if self.hours is None else start + self.hours * 3600.0
        if not begins <= start < ends:
            raise InputError(f"--from {start:.0f}: the log reaches from {begins:.0f} to {ends:.0f}")
        if end > ends:
            raise InputError(f"--hours {self.hours:g}: the log ends {(ends - start) / 3600.0:.2f} hours after {start:.0f}")
        return start, end


def trace(log: Log, span: Span, order: Sequence[str]) -> Trace:
    """The pool of the nodes in ``order`` through the span: what is idle when it begins is there, instants without a change are not.

    Nodes are called by their place in the order. Where several are alike the first is taken, and in the papers' replays the order of the
    columns (random) is all that tells nodes apart; real names would keep a trainer within a rack. Raises InputError for a span outside
    the log.
    """
    start, end = span.within(log.begins, log.ends)
    places = {node: f"{place:06d}" for place, node in enumerate(order)}
    mine = [(at, places[node], idle) for at, node, idle in log.events if at < end and node in places]
    before = {node: idle for at, node, idle in mine if at <= start}
    changes = [Change(start, joined=_idle(before))]
    pool = changes[0].joined
    for at, together in groupby((event for event in mine if event[0] > start), key=lambda event: event[0]):
        states = {node: idle for _, node, idle in together}
        change = Change(at, joined=_idle(states) - pool, left=pool & states.keys() - _idle(states))
        if change.joined or change.left:
            pool = (pool | change.joined) - change.left
            changes.append(change)
    return Trace(start=start, end=end, changes=tuple(changes))


def _idle(states: Mapping[str, bool]) -> frozenset[str]:
    return frozenset(node for node, idle in states.items() if idle)
