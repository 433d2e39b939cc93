"""From a profile and a goal to a plan: the cheapest mix that Algorithm 1 finds, what may go wrong with it, and what else there is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec
import numpy as np

from commensald.allocate.provision.exhaustive import every
from commensald.allocate.provision.loss import Loss
from commensald.allocate.provision.pace import Goal, Performance, Priced
from commensald.allocate.provision.risk import Revocation, chance_to_miss, interval_seconds
from commensald.allocate.provision.spotdnn import algorithm_1, price

CONFIDENCE = 0.95
"""A loss is promised where so many refits reach it; times are given between this and its complement."""


class OutOfReach(Exception):
    """A loss that lies outside the band."""


class NoMix(Exception):
    """No mix within the quotas meets the goal."""


@dataclass(frozen=True)
class Profile:
    """A training and the nodes it may have. ``band`` is ``None`` where the loss model was given and not fitted."""

    performance: Performance
    loss: Loss
    band: Loss | None = None
    revocation: Revocation = field(default_factory=Revocation)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A mix and what it does. ``batch`` is that of a step, of an asynchronous cluster b_w.

    ``seconds_low`` and ``seconds_high`` bound the time with 5 % on either side; both ``None``: not known, the second alone: never.
    """

    why: str
    mix: dict[str, int]
    nodes: int
    batch: float
    steps: float
    seconds: float
    seconds_low: float | None
    seconds_high: float | None
    cost: float
    risk: float | None


def plans(profile: Profile, goal: Goal) -> tuple[Plan, ...]:
    """The plan, then alternatives, each with ``why`` it is there. Raises OutOfReach, NoMix."""
    within_reach(profile, goal.loss)
    found: dict[tuple[int, ...], Plan] = {}
    for why, priced, aim in _offers(profile, goal):
        if aim != goal and not found:
            raise NoMix(_complaint(profile, goal))
        row = priced.best(aim)
        if row is None:
            continue
        plan, key = _plan(why, profile, goal, priced.only(np.array([row]))), tuple(priced.mixes[row])
        found[key] = msgspec.structs.replace(found[key], why=f"{found[key].why}, {why}") if key in found else plan
    return tuple(found.values())


def within_reach(profile: Profile, loss: float) -> None:
    """Raises OutOfReach for a ``loss`` that the curve, or less than CONFIDENCE of its refits, ever reaches."""
    floor, band = float(profile.loss.g5), profile.band
    if band is None:
        if loss <= floor:
            raise OutOfReach(f"loss {loss:g} is out of reach: the curve never falls below {floor:.4g}")
        return
    floors = np.asarray(band.g5)
    if loss <= floor or float((floors < loss).mean()) < CONFIDENCE:
        sure = float(np.quantile(floors, CONFIDENCE))
        raise OutOfReach(f"loss {loss:g} is outside the band: with {CONFIDENCE:.0%} confidence the curve gets to {sure:.4g} and no lower")


def _offers(profile: Profile, goal: Goal) -> Iterator[tuple[str, Priced, Goal]]:
    """Why, among which mixes, for which goal; the first that has one is the plan."""
    performance, loss = profile.performance, profile.loss
    windows, anyhow = algorithm_1(performance, loss, goal), algorithm_1(performance, loss, Goal(loss=goal.loss))
    windows = windows.only(windows.meets(goal))
    yield "fastest in budget" if goal.deadline_seconds is None and goal.budget is not None else "cheapest", windows, goal
    risk = chance_to_miss(windows, performance.kinds, goal, profile.band, profile.revocation)
    if risk is not None:
        yield f"risk at most {1 - CONFIDENCE:.0%}", windows.only(risk <= 1 - CONFIDENCE), goal
    yield "of one kind", windows.only((windows.mixes > 0).sum(axis=1) == 1), goal
    everything = all_mixes(profile, goal)
    if everything is not None:
        yield "best of all mixes", everything, goal
    yield "fastest", anyhow, fastest(goal)
    if goal != Goal(loss=goal.loss):
        yield "without limits", anyhow, Goal(loss=goal.loss)


def all_mixes(profile: Profile, goal: Goal) -> Priced | None:
    """Every mix, priced; ``None`` where there are too many."""
    performance = profile.performance
    quotas = [kind.quota for kind in performance.kinds]
    mixes = every(quotas, 1, sum(quotas) if performance.most is None else performance.most)
    return None if mixes is None else price(performance, profile.loss, goal, mixes)


def fastest(goal: Goal) -> Goal:
    """The same loss as soon as possible, whatever it costs."""
    return Goal(loss=goal.loss, budget=math.inf)


def _plan(why: str, profile: Profile, goal: Goal, priced: Priced) -> Plan:
    """Of the one mix that ``priced`` holds."""
    band, kinds = profile.band, profile.performance.kinds
    risk = chance_to_miss(priced, kinds, goal, band, profile.revocation)
    low, high = (math.inf, math.inf) if band is None else interval_seconds(priced, goal, band, CONFIDENCE)[:, 0]
    return Plan(
        why=why,
        mix={kind.name: int(count) for kind, count in zip(kinds, priced.mixes[0], strict=True) if count},
        nodes=int(priced.pace.members[0]),
        batch=float(priced.pace.batch[0]),
        steps=float(priced.steps[0]),
        seconds=float(priced.seconds[0]),
        seconds_low=_finite(low),
        seconds_high=_finite(high),
        cost=float(priced.cost[0]),
        risk=None if risk is None else float(risk[0]),
    )


def _finite(seconds: float) -> float | None:
    return float(seconds) if math.isfinite(seconds) else None


def _complaint(profile: Profile, goal: Goal) -> str:
    anyhow = algorithm_1(profile.performance, profile.loss, Goal(loss=goal.loss))
    quickest, cheapest = anyhow.best(fastest(goal)), anyhow.best(Goal(loss=goal.loss))
    if quickest is None or cheapest is None:
        return f"no mix within the quotas ever reaches loss {goal.loss:g}"
    in_time = "" if goal.deadline_seconds is None else f" in {goal.deadline_seconds:g} s"
    in_budget = "" if goal.budget is None else f" for {goal.budget:g}"
    return (
        f"no mix within the quotas reaches loss {goal.loss:g}{in_time}{in_budget}: "
        f"the fastest takes {anyhow.seconds[quickest]:.0f} s, the cheapest costs {anyhow.cost[cheapest]:.2f}"
    )
