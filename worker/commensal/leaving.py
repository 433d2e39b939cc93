"""When a member gives its node back. Pure: the caller brings the time."""

from __future__ import annotations

from enum import Enum

EXIT_SECONDS = 0.3
"""Kept for ending the process itself."""
LEAST_RESERVE_SECONDS = 3.0
"""A known end costs nothing to be early for, and a machine on which a step and a save are quick may be busy just then."""


class Verdict(Enum):
    """What a member that was asked to leave does now."""

    STAY = "stay"
    ASK = "ask"
    """Tell the coordinator, and go on until it has arranged the ring."""
    GO = "go"
    """End at once, as if lost: the others have the state."""


def reserve(save_seconds: float, step_seconds: float) -> float:
    """Seconds before a known end at which to begin leaving: a step, a save and the exit, each with a margin."""
    return max(2 * (save_seconds + step_seconds) + EXIT_SECONDS, LEAST_RESERVE_SECONDS)


def verdict(
    *, asked_ago: float | None, told: bool, holds_state: bool, others_stay: bool, saving: bool, remaining: float | None, budget: float
) -> Verdict:
    """What to do ``asked_ago`` seconds after this member was first asked to leave (``None``: it was not).

    ``told``: the coordinator knows; ``others_stay``: it says that other members keep the state, so the exit budget binds; ``saving``: the
    last members write their state, for which grace may be used.
    """
    if asked_ago is None:
        return Verdict.STAY
    if not holds_state:
        return Verdict.GO
    if remaining is not None and remaining <= EXIT_SECONDS and not saving:
        return Verdict.GO
    if others_stay and asked_ago > budget:
        return Verdict.GO
    return Verdict.STAY if told else Verdict.ASK
