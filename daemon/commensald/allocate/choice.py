"""Which allocator decides, by the policy's name for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from commensald.allocate import batch, exact, shares
from commensald.allocate.floors import fair
from commensald.decision import AllocatorName, Demand, Policy

Allocate = Callable[[Sequence[Demand], Sequence[int], int, float], tuple[int, ...]]
"""(demands, nodes each holds, nodes in all, look-ahead in seconds) -> nodes for each: 0 or [min, max], together no more than there are."""

_ALLOCATORS: Mapping[AllocatorName, Allocate] = {
    "exact": exact.counts,
    "milp": exact.counts,
    "equal": shares.equal,
    "equal-fair": shares.equal_fair,
    "batch": batch.counts,
}


def allocator(policy: Policy) -> Allocate:
    """The allocator that ``policy`` names, with its floors."""
    chosen = _ALLOCATORS[policy.allocator]
    if not policy.fair_share:
        return chosen
    return lambda demands, held, nodes, seconds: chosen(fair(demands, nodes, policy.fair_share), held, nodes, seconds)
