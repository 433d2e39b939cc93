"""The good citizen: how many pilots may be submitted now, which nodes are left alone, and when everything stops. Pure.

All of it is worked out from the ledger's pilots of the last day, so a restart forgets nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from commensald.config import LimitsSection
from commensald.decision import Demand
from commensald.ledger import PilotRecord

DIED_AT_ONCE = "died at once"
"""The reason that closes such a pilot in the ledger."""
AT_ONCE_SECONDS = 60.0
DEATHS = 3
"""So many in a row on a node, and it is left alone,"""
FIRST_SECONDS = 60.0
"""at first for so long, twice as long after each further one,"""
MOST_SECONDS = 3_600.0
KEEP_SECONDS = 86_400.0 + 2 * MOST_SECONDS
"""How far back the pilots must reach: the longest day has 25 hours."""


def submissions(limits: LimitsSection, pilots: Sequence[PilotRecord], now: float) -> int | None:
    """How many pilots may be submitted now; ``None`` when nothing limits that. ``pilots`` are all of the last hour, open and closed."""
    waiting = sum(each.started is None and each.closed is None for each in pilots)
    rooms = [
        _room(limits.in_flight, waiting),
        _room(limits.pilots_per_minute, sum(each.submitted > now - 60.0 for each in pilots)),
        _room(limits.pilots_per_hour, sum(each.submitted > now - 3_600.0 for each in pilots)),
    ]
    return min((each for each in rooms if each is not None), default=None)


def _room(most: int | None, used: int) -> int | None:
    return None if most is None else max(most - used, 0)


def capped(limits: LimitsSection, demands: Iterable[Demand]) -> tuple[Demand, ...]:
    """Each training's demand within ``pilots_per_training``; one that needs more nodes at least gets none."""
    most = limits.pilots_per_training
    return tuple(demands) if most is None else tuple(_cap(each, most) for each in demands)


def _cap(demand: Demand, most: int) -> Demand:
    return msgspec.structs.replace(demand, max_nodes=min(demand.max_nodes, most), active=demand.active and demand.min_nodes <= most)


def stopped(limits: LimitsSection, pilots: Iterable[PilotRecord], now: float, *, switched_off: bool) -> str | None:
    """Why no pilot may run now, if so. ``switched_off``: the kill switch's file exists."""
    if switched_off:
        return f"limits.kill_switch: {limits.kill_switch} exists"
    local = datetime.fromtimestamp(now)
    quiet = next((each for each in limits.quiet_hours if _within(each, f"{local:%H:%M}")), None)
    if quiet is not None:
        return f"limits.quiet_hours: {quiet}"
    most = limits.node_seconds_per_day
    if most is None:
        return None
    used = node_seconds(pilots, local.replace(hour=0, minute=0, second=0, microsecond=0).timestamp(), now)
    return f"limits.node_seconds_per_day: {used:.0f} of {most:.0f} are used" if used >= most else None


def _within(hours: str, clock: str) -> bool:
    """``22:00-06:00`` goes over midnight."""
    begin, _, end = hours.partition("-")
    return begin <= clock < end if begin < end else clock >= begin or clock < end


def node_seconds(pilots: Iterable[PilotRecord], since: float, now: float) -> float:
    """How long pilots have run between ``since`` and ``now``, added up."""
    ran = ((max(each.started, since), now if each.closed is None else each.closed) for each in pilots if each.started is not None)
    return sum(max(end - begin, 0.0) for begin, end in ran)


def died_at_once(pilot: PilotRecord, now: float, *, greeted: bool, asked: bool) -> bool:
    """Whether a pilot that has ended just now never was of use: it said nothing and nobody had ``asked`` it to leave."""
    began = pilot.submitted if pilot.started is None else pilot.started
    return pilot.node is not None and not greeted and not asked and now - began < AT_ONCE_SECONDS


def left_alone(pilots: Iterable[PilotRecord], now: float) -> frozenset[str]:
    """Nodes on which the last pilots died at once, for a time that grows with their number."""
    ended = sorted((each for each in pilots if each.closed is not None and each.node is not None), key=lambda each: each.closed or 0.0)
    deaths: dict[str, list[float]] = {}
    for each in ended:
        in_row = deaths.setdefault(each.node or "", [])
        if each.reason == DIED_AT_ONCE:
            in_row.append(each.closed or 0.0)
        else:
            in_row.clear()
    return frozenset(node for node, at in deaths.items() if len(at) >= DEATHS and now < at[-1] + _pause(len(at)))


def _pause(deaths: int) -> float:
    return float(min(FIRST_SECONDS * 2.0 ** min(deaths - DEATHS, 60), MOST_SECONDS))
