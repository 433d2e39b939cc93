"""When to save: Young's interval from what a save costs and how often everything is lost."""

from __future__ import annotations

import math

PRIOR_LOSSES = 1.0
PRIOR_SECONDS = 1800.0
"""Before anything was observed: as if all members had been lost once in half an hour."""
SHORTEST_SECONDS = 5.0
FIRST_SECONDS = 20.0
"""Until the cost of a save has been measured."""


def interval(cost_seconds: float, losses: int, observed_seconds: float) -> float:
    """sqrt(2 C M) (Young, 1974), C the stall of a save and M the mean time between total losses, so far.

    ``cost_seconds`` and the result are in seconds; a save never begins before the last one can have ended.
    """
    mean = (PRIOR_SECONDS + observed_seconds) / (PRIOR_LOSSES + losses)
    return max(math.sqrt(2.0 * cost_seconds * mean), SHORTEST_SECONDS)


class SaveClock:
    """Says when the next save of a training is due. Times are given by the caller, on one clock."""

    def __init__(self, now: float) -> None:
        self._began = now
        self._due = now + FIRST_SECONDS
        self._asked_at: float | None = None
        self._cost: float | None = None
        self._took = 0.0
        self.losses = 0

    def due(self, now: float) -> bool:
        """Whether to ask for a save now; asks again when an answer is long overdue."""
        if self._asked_at is not None and now - self._asked_at > max(30.0, 4 * self._took):
            self._asked_at = None
        if self._asked_at is not None or now < self._due:
            return False
        self._asked_at = now
        return True

    def saved(self, seconds: float, stall_seconds: float, now: float) -> None:
        """A checkpoint is complete."""
        self._cost = stall_seconds if self._cost is None else (self._cost + stall_seconds) / 2
        self._took, self._asked_at = seconds, None
        self._due = now + max(interval(self._cost, self.losses, now - self._began), 2 * seconds)

    def failed(self, now: float) -> None:
        """A save has failed: try again after a while."""
        self._asked_at, self._due = None, now + FIRST_SECONDS
