"""What trainings are compared by: samples of one are not worth those of another, but a node that doubles either's speed is."""

from __future__ import annotations

import msgspec

from commensald.allocate.curves import rates
from commensald.decision import Demand


def speedup(demand: Demand) -> Demand:
    """``demand`` with its curve in multiples of its speed on the fewest nodes that it can use, counted by node."""
    least = max(demand.min_nodes, 1)
    first = float(rates(demand.curve, least)[least]) / least
    if first <= 0:
        return demand
    return msgspec.structs.replace(demand, curve=tuple((nodes, rate / first) for nodes, rate in demand.curve))
