"""The chance that a goal is missed: the curve may be another one of its band, and nodes may be taken away on the way."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from commensald.allocate.provision.loss import Loss
from commensald.allocate.provision.pace import Floats, Goal, Kind, Priced

_MOST_REVOKED = 200


class Revocation(msgspec.Struct, frozen=True, kw_only=True):
    """What one costs: everybody waits ``overhead_seconds`` (T_ohd, under 30 s in the paper), and the node's share of the work is missing
    for ``takeover_seconds``, until another is there (2.1 minutes in the paper).
    """

    overhead_seconds: float = 30.0
    takeover_seconds: float = 126.0


def chance_to_miss(priced: Priced, kinds: tuple[Kind, ...], goal: Goal, band: Loss | None, revocation: Revocation) -> Floats | None:
    """Of each mix that gets there, in [0, 1]; ``None`` where nothing is at risk (no limit), or nothing known of it (no band, no rates).

    Revocations are a Poisson process at the kinds' rates over the expected time, and each delays by the cost of an average member.
    """
    rates = np.array([kind.preemptions_per_hour or 0.0 for kind in kinds])
    unlimited = goal.deadline_seconds is None and goal.budget is None
    if unlimited or (band is None and all(kind.preemptions_per_hour is None for kind in kinds)):
        return None
    seconds = priced.seconds[None, :] if band is None else band.steps(goal.loss, priced.pace) * priced.pace.step_seconds
    limit = _limit_seconds(priced, goal)
    expected = (priced.mixes @ rates) * priced.seconds / 3600
    delay = revocation.overhead_seconds + revocation.takeover_seconds / priced.pace.members
    missed, probability = np.zeros(seconds.shape[1]), np.exp(-expected)
    left = 1.0 - probability
    for revoked in range(1, _MOST_REVOKED + 1):
        missed += probability * (seconds + delay * (revoked - 1) > limit).mean(axis=0)
        probability = probability * expected / revoked
        if left.max(initial=0.0) < 1e-9:
            break
        left = left - probability
    return np.asarray(np.clip(missed + np.maximum(left, 0.0), 0.0, 1.0))


def interval_seconds(priced: Priced, goal: Goal, band: Loss, confidence: float) -> Floats:
    """The (1 - confidence, confidence) points of the time that each mix takes, two rows."""
    seconds = band.steps(goal.loss, priced.pace) * priced.pace.step_seconds
    return np.asarray(np.quantile(seconds, [1 - confidence, confidence], axis=0, method="nearest"))


def _limit_seconds(priced: Priced, goal: Goal) -> Floats:
    """Until the deadline, or until the budget is spent."""
    deadline = math.inf if goal.deadline_seconds is None else goal.deadline_seconds
    with np.errstate(divide="ignore", invalid="ignore"):
        spent = np.full(priced.cost.size, math.inf) if goal.budget is None else goal.budget * priced.seconds / priced.cost
    return np.minimum(deadline, np.where(np.isnan(spent), math.inf, spent))
