"""Where and when a job fits: whole nodes, jobs that end at their limit, reservations that shut nodes.

Pilots do not appear here: to the plan of the primary jobs they do not exist.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

import msgspec

from commensald.cluster import Reservation


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A pending job's planned start and nodes."""

    job: str
    start: float
    nodes: tuple[str, ...]


class Profile:
    """Availability of the nodes that are up: each is free from one moment on, save where a reservation shuts it."""

    def __init__(self, free_at: dict[str, float], reservations: Iterable[Reservation]) -> None:
        """``free_at``: node -> epoch seconds (``inf``: its job has no limit), in the order in which nodes are taken."""
        self._free_at = free_at
        self._shut: dict[str, list[tuple[float, float]]] = {}
        for reservation in reservations:
            end = math.inf if reservation.end is None else reservation.end
            for node in reservation.nodes & free_at.keys():
                self._shut.setdefault(node, []).append((reservation.start, end))

    def occupy(self, nodes: Iterable[str], until: float) -> None:
        """These nodes are taken until then."""
        self._free_at.update((node, until) for node in nodes)

    def closes(self, node: str, now: float) -> float:
        """The next moment at which a reservation shuts the node; ``inf``: none."""
        return min((start for start, end in self._shut.get(node, ()) if end > now), default=math.inf)

    def usable(self, start: float, seconds: float, without: Collection[str] = ()) -> list[str]:
        """The nodes that are free through ``[start, start + seconds)``."""
        free = [node for node, at in self._free_at.items() if at <= start]
        if without:
            taken = frozenset(without)
            free = [node for node in free if node not in taken]
        return [node for node in free if self._open(node, start, start + seconds)] if self._shut else free

    def earliest(self, count: int, seconds: float, now: float) -> tuple[float, tuple[str, ...]] | None:
        """The first moment at which ``count`` nodes are free for so long, and which: the ones that come free last.

        Idle nodes are thus left to jobs that can be backfilled. ``None``: never, as far as limits tell.
        """
        for start in self._moments(count, now):
            nodes = self.usable(start, seconds)
            if len(nodes) >= count:
                last_freed_first = sorted(nodes, key=lambda node: -max(now, self._free_at[node]))
                return start, tuple(last_freed_first[:count])
        return None

    def _moments(self, count: int, now: float) -> Sequence[float]:
        """When to look: no sooner than ``count`` nodes are free of jobs, then whenever a job or a reservation ends."""
        freed = sorted(max(now, at) for at in self._free_at.values())
        if count > len(freed):
            return ()
        reopened = {end for shut in self._shut.values() for _, end in shut if end > freed[count - 1]}
        return sorted(at for at in {*freed[count - 1 :], *reopened} if at < math.inf)

    def _open(self, node: str, start: float, end: float) -> bool:
        return all(end <= shuts or start >= opens for shuts, opens in self._shut.get(node, ()))
