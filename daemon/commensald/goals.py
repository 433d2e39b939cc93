"""A training's goal while it runs: whether it is reached, and how many nodes it takes to reach it in time (spotDNN's replanning).

Nodes come and go, so the plan is made anew every few seconds and whenever the training has lost one: what it then needs becomes its floor
in the allocation, and pilots for it are asked for while its ring goes on with what it has.
"""

from __future__ import annotations

import msgspec

from commensald.allocate.curves import Curve
from commensald.allocate.provision.curve import CurveRing
from commensald.allocate.provision.fit import Observed, TooFew, fit
from commensald.allocate.provision.loss import Progress
from commensald.allocate.provision.pace import Goal as Aim
from commensald.allocate.provision.pace import Kind
from commensald.allocate.provision.search import OutOfReach, Profile, within_reach
from commensald.allocate.provision.takeover import takeover
from commensald.coordinator.pace import Seen
from commensald.trainings import Goal

REACHED = "goal reached"
RECENT_PART = 0.5
"""Of its steps; how it began says little about how it goes on, and the model's one hyperbola seldom fits both."""
REFITS = 40
"""Behind the band; its 5 % then rests on two. More would hold up the daemon's loop."""


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """``nodes`` are the fewest that reach the goal in time, or the most that its budget allows; then it is reached in ``seconds``.

    ``note`` says why nothing can be foreseen, if so.
    """

    nodes: int | None = None
    seconds: float | None = None
    in_time: bool = True
    note: str = ""


def ended(goal: Goal, loss: float | None, node_hours: float, now: float) -> str | None:
    """Why the training is over, if it is; ``loss`` is that of late, if known."""
    if goal.loss is not None and loss is not None and loss <= goal.loss:
        return f"{REACHED}: loss {loss:.4g}"
    if goal.deadline is not None and now >= goal.deadline:
        missed = "" if goal.loss is None else f", goal missed: loss {'unknown' if loss is None else f'{loss:.4g}'} instead of {goal.loss:g}"
        return f"its deadline has passed{missed}"
    if goal.budget is not None and node_hours >= goal.budget:
        return f"its budget of {goal.budget:g} node-hours is spent"
    return None


def outlook(goal: Goal, seen: Seen, curve: Curve, most: int, now: float) -> Outlook | None:
    """What the goal takes, on up to ``most`` nodes of this throughput; ``None``: it has no loss to reach, or no limit to keep."""
    if goal.loss is None or (goal.deadline is None and goal.budget is None) or not seen.losses:
        return None
    points = [point for point in seen.losses if point.step >= RECENT_PART * seen.losses[-1].step]
    try:
        observed = Observed.of_ring([each.step for each in points], [each.loss for each in points], [each.batch for each in points])
        model = fit(observed, "synchronous", REFITS)
        ring = CurveRing((Kind(name="node", quota=most, charge=1.0, batch=1.0, seconds=1.0),), curve, points[-1].batch, most)
        within_reach(Profile(ring, model.loss, model.band), goal.loss)
    except (TooFew, OutOfReach) as error:
        return Outlook(note=str(error))
    aim = Aim(
        loss=goal.loss,
        deadline_seconds=None if goal.deadline is None else goal.deadline - now,
        budget=None if goal.budget is None else goal.budget - seen.node_seconds / 3600,
    )
    at = Progress(points[-1].step, points[-1].loss)
    plan = takeover(ring, model.loss, aim, {}, {"node": most}, at, overhead_seconds=0.0)
    return None if plan is None else Outlook(nodes=plan.ask.get("node", 0), seconds=plan.seconds, in_time=plan.in_time)
