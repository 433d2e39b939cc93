"""The embedded cluster's core with the rules in which PBS differs: exact limits, several nodes a job, named hosts, shrink-to-fit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from commensald.schedulers.local.core import Core
from commensald.schedulers.local.entry import Entry
from commensald.schedulers.local.jobs import Policy, Reason
from commensald.schedulers.local.plan import Profile


class PbsPolicy(Policy, frozen=True, kw_only=True):
    """``slurm_like``: free nodes before preemption, and no job over a planned start; but limits are to the second."""

    slurm_like: bool = True

    def limit(self, seconds: float | None) -> float | None:
        """As asked for."""
        return seconds


class PbsCore(Core):
    """A "pilot" here is any job of a queue below ``preempt_queue_prio``, a "primary job" one of an express queue."""

    def __init__(self, nodes: Sequence[str]) -> None:
        super().__init__(nodes, PbsPolicy())
        self.kill_delay: dict[str, float] = {}
        """Job -> seconds from SIGTERM to SIGKILL (its queue's)."""
        self.pinned: dict[str, tuple[str, ...]] = {}
        """Job -> the hosts that it must have."""
        self.shrink: dict[str, tuple[float, float | None]] = {}
        """Job -> (min_walltime, max_walltime)."""

    def put_first(self, job: str) -> None:
        """A preempted job goes before all others of its kind."""
        self.jobs[job].order = min((entry.order for entry in self.jobs.values()), default=0) - 1

    def _terminate(self, entry: Entry, reason: Reason, now: float, wait: float) -> None:
        super()._terminate(entry, reason, now, self.kill_delay[entry.spec.id])

    def _schedule_primaries(self, now: float) -> None:
        if not self._waits():
            super()._schedule_primaries(now)

    def _waits(self) -> bool:
        """The scheduler looks at no other job until those that it preempts are gone: sched.log has no cycle meanwhile."""
        return any(entry.preempted_at is not None for entry in self.jobs.values())

    def _schedule_pilots(self, now: float) -> None:
        if self._waits():
            return
        closes = self._closes(now)
        for entry in self.pending(pilots=True):
            nodes = self._places(entry, closes, now)
            for node in nodes:
                del closes[node]
            if nodes:
                self._assign(entry, tuple(nodes), now)

    def _places(self, entry: Entry, closes: Mapping[str, float], now: float) -> list[str]:
        """The nodes on which it may start now, and its walltime if that is left to the scheduler; none when there are too few."""
        least, most = self.shrink.get(entry.spec.id, (entry.seconds, entry.limit))
        free = [node for node, at in closes.items() if at >= now + least]
        nodes = self._complete(entry, sorted(free, key=lambda node: -closes[node]))
        if nodes and entry.spec.id in self.shrink:
            room = min(closes[node] for node in nodes) - now
            fits = min(room, math.inf if most is None else most)
            entry.limit = None if fits == math.inf else float(int(fits))
        return nodes

    def _fitting(self, profile: Profile, entry: Entry, now: float) -> list[str]:
        return self._complete(entry, profile.usable(now, entry.seconds, self._held(entry, now)))

    def _complete(self, entry: Entry, free: Iterable[str]) -> list[str]:
        """As many of the free nodes as the job takes, the pinned ones first; none when one is missing."""
        free = list(free)
        wanted = [*self.pinned.get(entry.spec.id, ())]
        if not set(wanted) <= set(free) or len(free) < entry.spec.node_count:
            return []
        return [*wanted, *(node for node in free if node not in wanted)][: entry.spec.node_count]
