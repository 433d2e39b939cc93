"""Which allocator decides, by the policy's name for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from commensald.allocate import batch, exact, grouped, knapsack, milp, shares
from commensald.allocate.floors import fair
from commensald.allocate.placing import own, place
from commensald.decision import AllocatorName, Demand, Policy

Allocate = Callable[[Sequence[Demand], Sequence[int], int, float], tuple[int, ...]]
"""(demands, nodes each holds, nodes in all, look-ahead in seconds) -> nodes for each: 0 or [min, max], together no more than there are."""

_ALLOCATORS: Mapping[AllocatorName, Allocate] = {
    "exact": exact.counts,
    "milp": knapsack.counts,
    "equal": shares.equal,
    "equal-fair": shares.equal_fair,
    "batch": batch.counts,
}


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """Training -> nodes, and what there is to say about them."""

    nodes: Mapping[str, frozenset[str]]
    note: str | None = None


def allocator(policy: Policy) -> Allocate:
    """The allocator that ``policy`` names, with its floors."""
    chosen = _ALLOCATORS[policy.allocator]
    if policy.allocator == "milp":
        chosen = partial(knapsack.counts, caps=policy.caps, limit_seconds=policy.milp_seconds)
    return lambda demands, held, nodes, seconds: chosen(fair(demands, nodes, policy.fair_share), held, nodes, seconds)


def share(policy: Policy, demands: Sequence[Demand], available: frozenset[str], expected_seconds: Mapping[str, float]) -> Shared:
    """The nodes of each training: by "milp" chosen one by one, by all others counted and then placed."""
    if policy.allocator == "milp":
        return _planned(policy, fair(demands, len(available), policy.fair_share), available, expected_seconds)
    held = own(demands, available)
    sizes = allocator(policy)(demands, [len(held[each.training]) for each in demands], len(available), policy.look_ahead_seconds)
    return Shared(nodes=place(demands, sizes, available, expected_seconds))


def _planned(policy: Policy, demands: Sequence[Demand], available: frozenset[str], expected_seconds: Mapping[str, float]) -> Shared:
    limit, ahead, caps = policy.milp_seconds, policy.look_ahead_seconds, policy.caps
    if policy.milp_over == "counts":
        plan = grouped.plan(demands, available, ahead, expected_seconds, caps=caps, limit_seconds=limit)
    else:
        plan = milp.plan(demands, available, ahead, big_m=policy.big_m, caps=caps, limit_seconds=limit)
    note = f"milp: no optimum within {limit:g} s ({plan.status}): nodes stay as they are"
    return Shared(nodes=plan.nodes, note=None if plan.optimal else note)
