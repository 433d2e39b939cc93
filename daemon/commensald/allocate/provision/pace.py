"""What the search needs to know of a cluster, whatever trains in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mixes = NDArray[np.int64]
"""One mix a row, one kind of node a column: how many nodes of each kind."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of node: an instance type or a partition. ``batch`` samples take ``seconds`` where one such node trains alone.

    ``quota`` nodes can be had. ``charge`` is the price of a node-hour, in the site's own unit. ``preemptions_per_hour`` is how often
    one node is taken away; ``None``: not known.
    """

    name: str
    quota: int
    charge: float
    batch: float
    seconds: float
    gpus: int = 1
    preemptions_per_hour: float | None = None


@dataclass(frozen=True)
class Pace:
    """How mixes step, one value a mix: seconds a step, batch of a step, members, and the convergence coefficient R."""

    step_seconds: Floats
    batch: Floats
    members: Floats
    spread: Floats


class Performance(Protocol):
    """A way to train on unequal nodes."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The columns of a mix."""

    @property
    def alone_seconds(self) -> Floats:
        """T^i, an iteration of each kind alone: what orders the instances of Algorithm 1."""

    @property
    def smallest_batch(self) -> float:
        """b_min: no step has fewer samples."""

    @property
    def fastest(self) -> float:
        """v_max, samples a second of the fastest node."""

    @property
    def most(self) -> int | None:
        """No more members than this are of use; ``None``: no such bound."""

    def pace(self, mixes: Mixes) -> Pace:
        """Of each mix; one without members never steps."""


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """A loss to reach, in so many seconds from now, for so much; ``None``: no limit."""

    loss: float
    deadline_seconds: float | None = None
    budget: float | None = None


@dataclass(frozen=True)
class Priced:
    """Mixes and what reaching the goal takes on each: steps, seconds, and charge."""

    mixes: Mixes
    pace: Pace
    steps: Floats
    seconds: Floats
    cost: Floats

    def only(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> Priced:
        """Some of them."""
        pace = Pace(**{name: values[rows] for name, values in vars(self.pace).items()})
        return Priced(self.mixes[rows], pace, self.steps[rows], self.seconds[rows], self.cost[rows])

    def meets(self, goal: Goal) -> NDArray[np.bool_]:
        """Which of them keep to the deadline and the budget."""
        in_time = self.seconds <= (np.inf if goal.deadline_seconds is None else goal.deadline_seconds)
        return np.isfinite(self.seconds) & in_time & (self.cost <= (np.inf if goal.budget is None else goal.budget))

    def best(self, goal: Goal) -> int | None:
        """The cheapest that meets ``goal``, of two as cheap the faster; the fastest, where there is a budget and no deadline.

        ``None`` when none meets it.
        """
        allowed = np.flatnonzero(self.meets(goal))
        keys = (self.cost, self.seconds) if goal.budget is not None and goal.deadline_seconds is None else (self.seconds, self.cost)
        return int(allowed[np.lexsort([key[allowed] for key in keys])[0]]) if allowed.size else None
