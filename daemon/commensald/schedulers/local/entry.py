"""A job inside the embedded cluster: what it asked for, and how far it has come."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from commensald.schedulers.local.jobs import JobSpec, Reason


@dataclass(slots=True)
class Entry:
    """A job in the cluster: pending without nodes, assigned with them, running once ``started``."""

    spec: JobSpec
    order: int
    submitted: float
    limit: float | None
    nodes: tuple[str, ...] = ()
    assigned: float | None = None
    started: float | None = None
    reason: Reason | None = None
    """Why it was told to end."""
    preempted_at: float | None = None
    term_at: float | None = None
    kill_at: float | None = None

    @property
    def seconds(self) -> float:
        """Its time limit, ``inf`` without one."""
        return math.inf if self.limit is None else self.limit

    @property
    def expected_end(self) -> float:
        """When its limit is reached, counted from its assignment until its process starts."""
        begun = self.started if self.started is not None else self.assigned
        return math.inf if begun is None else begun + self.seconds

    @property
    def rank(self) -> tuple[int, float, int]:
        """Its place in the queue, lowest first."""
        return (-self.spec.tier, -self.spec.priority, self.order)

    def moments(self) -> Iterator[float]:
        """When it is next to be told something, if it runs."""
        if self.started is None:
            return
        if self.reason is None and self.expected_end < math.inf:
            yield self.expected_end
        for at in (self.term_at, self.kill_at):
            if at is not None and at < math.inf:
                yield at
