"""What a training asks of the allocator, from its state, its limits and what has been learnt of it. Pure."""

from __future__ import annotations

from collections.abc import Collection

from commensald.decision import Demand
from commensald.goals import Outlook
from commensald.learning import Learnt
from commensald.ledger import TrainingRecord, TrainingState
from commensald.trainings import TrainingSpec


def demand(record: TrainingRecord, learnt: Learnt, nodes: Collection[str], now: float, *, draining: bool) -> Demand:
    """What a training asks for: nothing while it is not active; while it backs off, no more than its members hold. Pure.

    One whose script has failed is tried again on its smallest number of nodes, so that it does not take others' for nothing.
    """
    spec = record.spec
    waits = record.retry_at is not None and record.retry_at > now
    active = record.state is TrainingState.ACTIVE and not draining and not (waits and len(nodes) < spec.min_nodes)
    most = len(nodes) if active and waits else max(spec.min_nodes, len(nodes)) if record.failures else spec.max_nodes
    floor, most = _bounds(spec, learnt.outlook, most)
    return Demand(
        training=spec.name,
        owner=spec.owner,
        account=spec.pilot.account,
        min_nodes=_fewest(spec, learnt),
        max_nodes=most,
        floor_nodes=floor,
        weight=spec.weight,
        curve=learnt.curve,
        stall_seconds=learnt.stall_seconds,
        warmup_seconds=learnt.warmup_seconds,
        elastic=learnt.elastic,
        nodes=frozenset(nodes),
        active=active,
    )


def _fewest(spec: TrainingSpec, learnt: Learnt) -> int:
    """No node by itself where one cannot hold the smallest batch."""
    fewest = spec.min_nodes if learnt.elastic is None else max(spec.min_nodes, learnt.elastic.fewest_nodes)
    return min(fewest, spec.max_nodes)


def _bounds(spec: TrainingSpec, outlook: Outlook | None, most: int) -> tuple[int, int]:
    """Fewest and most nodes by its goal: a deadline asks for no less than its plan, a budget alone allows no more."""
    if outlook is None or outlook.nodes is None:
        return 0, most
    if spec.goal.deadline is None:
        return 0, max(min(outlook.nodes, most), spec.min_nodes)
    return min(outlook.nodes, most), most
