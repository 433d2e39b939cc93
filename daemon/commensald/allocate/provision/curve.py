"""A ring on one kind of node whose throughput is known by its number of members: what the running daemon has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from commensald.allocate.curves import Curve, rates
from commensald.allocate.provision.pace import Floats, Kind, Mixes, Pace


@dataclass(frozen=True)
class CurveRing:
    """``curve`` is in samples per second, for steps of ``batch`` samples; ``kinds`` is a single one."""

    kinds: tuple[Kind, ...]
    curve: Curve
    batch: float
    most: int | None

    @property
    def smallest_batch(self) -> float:
        """The batch does not depend on the mix."""
        return self.batch

    @property
    def alone_seconds(self) -> Floats:
        """A step of one node."""
        return np.array([self.batch / self._rates(1)[1]])

    @property
    def fastest(self) -> float:
        """The most that a node adds, wherever on the curve."""
        return max(rate / nodes for nodes, rate in self.curve)

    def pace(self, mixes: Mixes) -> Pace:
        """A step of each mix; R is 0, as of one worker."""
        members = mixes.sum(axis=1)
        with np.errstate(divide="ignore"):
            seconds = self.batch / self._rates(int(members.max(initial=1)))[members]
        return Pace(seconds, np.full(members.size, self.batch), members.astype(float), np.zeros(members.size))

    def _rates(self, most: int) -> Floats:
        return rates(self.curve, most)
