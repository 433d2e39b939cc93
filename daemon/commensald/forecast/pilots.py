"""Pilots: which to ask for. One per hole, as long as the plan allows: lost node-time comes from launch lag, not from length.

Aimed pilots go to idle nodes that we have seen. A few standing ones wait without a node list, so that the scheduler's own backfill fills a
new hole at once; their lengths form a ladder, so that one of them fits whatever plan there is (research/policy.md, section A).

A pilot that overlaps a planned start is refused by Slurm's backfill although it is preemptible, so its limit ends before the planned
close by the time it takes to start and one ``bf_resolution`` (research/slurm.md, research/policy.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from commensald.cluster import Facts
from commensald.decision import Policy, Request
from commensald.forecast.windows import Window

STANDING_MINUTES = (15.0, 60.0, 5.0, 240.0, 2.0)
"""Time limits of standing pilots, in the order in which they are asked for, and again from the start."""
RECENT_SECONDS = 3_600.0
TOGETHER_SECONDS = 60.0
"""Nodes that are claimed within so long are taken as one claim, and come back together."""


def aimed(windows: Iterable[Window], owner: str, facts: Facts, now: float, policy: Policy) -> tuple[Request, ...]:
    """A request for every window that is open, has no pilot yet and is long enough; the longest expected first."""
    free = [each for each in windows if each.open(now) and not each.held]
    ordered = sorted(free, key=lambda each: (-each.expected_seconds(now), each.node))
    requests = (_request(each, owner, facts, now, policy) for each in ordered)
    return tuple(each for each in requests if each is not None)


def _request(window: Window, owner: str, facts: Facts, now: float, policy: Policy) -> Request | None:
    limit = longest(window, facts, now, policy)
    if limit < max(policy.minimum_window_seconds, 60.0 if facts.whole_minutes else 0.0):
        return None
    return Request(owner=owner, node=window.node, time_limit=None if math.isinf(limit) else limit, reason=window.reason)


def longest(window: Window, facts: Facts, now: float, policy: Policy) -> float:
    """The longest time limit that the plan and the policy leave, in seconds; infinity when neither sets one, 0 when there is none."""
    room = math.inf if window.closes is None else window.closes - now - policy.start_lag_seconds - facts.backfill_resolution_seconds
    limit = max(min(room, math.inf if policy.max_minutes is None else policy.max_minutes * 60.0), 0.0)
    return limit if math.isinf(limit) or not facts.whole_minutes else limit // 60.0 * 60.0


def standing(count: int, already: int, owner: str, policy: Policy) -> tuple[Request, ...]:
    """``count`` requests without a node, for an owner that has ``already`` so many pending."""
    return tuple(
        Request(owner=owner, node=None, time_limit=_rung(already + each, policy), reason="standing: the next hole") for each in range(count)
    )


def _rung(index: int, policy: Policy) -> float:
    minutes = STANDING_MINUTES[index % len(STANDING_MINUTES)]
    return min(minutes, math.inf if policy.max_minutes is None else policy.max_minutes) * 60.0


def standing_size(claims: Iterable[float], now: float, most: int) -> int:
    """How many pilots should stand by: as many as nodes were claimed together within the last hour, one at least, ``most`` at most.

    ``claims`` are the times at which primary jobs have taken nodes that were open, one for each node.
    """
    recent = [each for each in claims if each > now - RECENT_SECONDS]
    together = (sum(at <= each < at + TOGETHER_SECONDS for each in recent) for at in recent)
    return min(max(together, default=1), most)
