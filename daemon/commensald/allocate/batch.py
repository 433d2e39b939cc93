"""Elastic batches (MASCOTS'20): nodes and batch of each training chosen together.

On k nodes a training takes the batch in its range that trains fastest; S(k) is what that gains over its initial batch on the fewest nodes
that it can use. S is summed over all trainings and maximised by exact.py, with each one's smallest size for its floor: every training that
is admitted has nodes (research/papers.md, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from commensald.allocate import exact
from commensald.allocate.curves import rates
from commensald.allocate.elastic import fastest
from commensald.decision import Demand


def choose(demand: Demand, nodes: int) -> int | None:
    """The batch for ``demand`` on ``nodes`` nodes; ``None``: its batch is fixed, or none of the range fits."""
    if demand.elastic is None or nodes < demand.elastic.fewest_nodes:
        return None
    batches, _ = fastest(demand.elastic, nodes)
    return batches[-1]


def scaled(demand: Demand) -> Demand:
    """``demand`` with scaling factors S(k) for a curve, the fastest batch at each k, and no size on which no batch fits."""
    if demand.elastic is None:
        first = float(rates(demand.curve, demand.min_nodes)[demand.min_nodes]) / demand.min_nodes
        return msgspec.structs.replace(demand, curve=_divided(demand.curve, first))
    elastic, fewest = demand.elastic, max(demand.min_nodes, demand.elastic.fewest_nodes)
    _, progress = fastest(elastic, demand.max_nodes)
    initial = np.clip(elastic.reference, elastic.least, (elastic.per_device or elastic.most) * fewest)
    first = float(elastic.progress(np.array(fewest), initial)) / fewest
    curve = tuple(enumerate(progress, start=1))
    return msgspec.structs.replace(demand, min_nodes=fewest, curve=_divided(curve, first))


def _divided(curve: Sequence[tuple[int, float]], by: float) -> tuple[tuple[int, float], ...]:
    return tuple((nodes, rate / by if by > 0 else rate) for nodes, rate in curve)


def counts(demands: Sequence[Demand], held: Sequence[int], nodes: int, look_ahead_seconds: float) -> tuple[int, ...]:
    """Nodes for each of ``demands``, none less than its smallest size; where not all of them fit, the last are left without that right."""
    return exact.counts([_admitted(scaled(each)) for each in demands], held, nodes, look_ahead_seconds)


def smallest(demand: Demand) -> int | None:
    """Nodes without which ``demand`` cannot run; ``None``: not even its most are enough for its smallest batch."""
    fewest = max(demand.min_nodes, demand.elastic.fewest_nodes if demand.elastic else 1)
    return fewest if fewest <= demand.max_nodes else None


def published(demand: Demand) -> Demand:
    """``demand`` as MASCOTS'20 sees it: a rescale costs nothing in its programme, only the time between two of them bounds them."""
    return msgspec.structs.replace(demand, stall_seconds=0.0, shrink_stall_seconds=None, warmup_seconds=0.0)


def _admitted(demand: Demand) -> Demand:
    floor = max(demand.floor_nodes, demand.min_nodes)
    return msgspec.structs.replace(demand, floor_nodes=floor) if demand.min_nodes <= demand.max_nodes else demand
