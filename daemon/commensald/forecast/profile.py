"""Availability profile: which named nodes are free in which span of the future.

Sets of nodes are integers, one bit a node: the first set bit is the node that the scheduler would take first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

Mask = int


class Profile:
    """Free nodes as a step function of time from ``start`` on; starts all free."""

    def __init__(self, start: float, everything: Mask) -> None:
        self._times = [start]
        self._free = [everything]

    def take(self, nodes: Mask, start: float, end: float) -> None:
        """Mark ``nodes`` busy in [start, end); an infinite end is for good."""
        first = self._cut(max(start, self._times[0]))
        last = len(self._times) if end == float("inf") else self._cut(max(end, self._times[0]))
        for index in range(first, last):
            self._free[index] &= ~nodes

    def free(self, start: float, end: float, among: Mask) -> Mask:
        """Those of ``among`` that are free all through [start, end)."""
        for index in range(self._slot(start), len(self._times)):
            if self._times[index] >= end or not among:
                break
            among &= self._free[index]
        return among

    def earliest(self, count: int, seconds: float, among: Mask, after: float, before: float) -> float | None:
        """First instant in [after, before) from which ``count`` nodes of ``among`` are free for ``seconds``; ``None``: there is none."""
        index = self._slot(max(after, self._times[0]))
        while index < len(self._times) and (start := max(self._times[index], after)) < before:
            blocked = self._blocked(count, index, start + seconds, among)
            if blocked is None:
                return start
            index = blocked
        return None

    def _blocked(self, count: int, index: int, end: float, among: Mask) -> int | None:
        """``None`` when it fits from ``index`` on, else the next slot that is worth a try."""
        left = among
        for step in range(index, len(self._times)):
            if self._times[step] >= end:
                break
            left &= self._free[step]
            if left.bit_count() < count:
                return step + 1 if (among & self._free[step]).bit_count() < count else index + 1
        return None

    def _slot(self, time: float) -> int:
        return max(bisect_right(self._times, time) - 1, 0)

    def _cut(self, time: float) -> int:
        """Index of the slot that begins at ``time``, which is made if it is missing."""
        slot = self._slot(time)
        if self._times[slot] == time:
            return slot
        self._times.insert(slot + 1, time)
        self._free.insert(slot + 1, self._free[slot])
        return slot + 1


def lowest(nodes: Mask, count: int) -> Mask:
    """The ``count`` first nodes of ``nodes``."""
    chosen = 0
    for _ in range(count):
        bit = nodes & -nodes
        chosen |= bit
        nodes ^= bit
    return chosen


def bits(nodes: Mask) -> Iterator[int]:
    """Positions of the set bits, ascending."""
    while nodes:
        bit = nodes & -nodes
        yield bit.bit_length() - 1
        nodes ^= bit
