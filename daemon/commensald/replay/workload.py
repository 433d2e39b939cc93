"""Who trains in a replay: an endless queue of trainers, first come, first served."""

from __future__ import annotations

from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from commensald.allocate.curves import Curve, rates


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A trainer in the queue: done after ``samples``; ``curve`` is samples per second by nodes, the rest seconds.

    ``grow_stall`` and ``shrink_stall`` are FreeTrain's R_up and R_dw: no step for so long. ``warmup``: so long a new node adds nothing.
    """

    name: str
    curve: Curve
    samples: float
    min_nodes: int = 1
    max_nodes: int = 64
    grow_stall: float = 0.0
    shrink_stall: float = 0.0
    warmup: float = 0.0

    def rate(self, nodes: int) -> float:
        """Samples per second on so many nodes, at most ``max_nodes``."""
        return float(_rates(self.curve, self.max_nodes)[nodes]) if nodes >= self.min_nodes else 0.0

    def in_speedup(self) -> Kind:
        """The same trainer with its work counted in seconds of one node (the papers' scaling-efficiency metric)."""
        one = float(_rates(self.curve, 1)[1])
        curve = tuple((nodes, rate / one) for nodes, rate in self.curve)
        return msgspec.structs.replace(self, curve=curve, samples=self.samples / one)


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that replace those of every trainer; ``None`` leaves them."""

    grow_stall: float | None = None
    shrink_stall: float | None = None
    warmup: float | None = None

    def of(self, kind: Kind) -> Kind:
        """``kind`` at these costs."""
        given = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        return msgspec.structs.replace(kind, **given)


FREE = Costs(grow_stall=0.0, shrink_stall=0.0, warmup=0.0)


@lru_cache(maxsize=1024)
def _rates(curve: Curve, most: int) -> NDArray[np.float64]:
    return rates(curve, most)
