"""The good citizen's limits, by hand and at their edges."""

from __future__ import annotations

from datetime import datetime

import pytest

from commensald.config import LimitsSection
from commensald.decision import Demand
from commensald.ledger import PilotRecord
from commensald.limits import DIED_AT_ONCE, capped, died_at_once, left_alone, node_seconds, stopped, submissions

NOW = 1_000_000.0


def pilot(*, submitted: float = NOW - 10.0, started: float | None = None, closed: float | None = None, **more: object) -> PilotRecord:
    fields = {"uuid": "u", "owner": "ada", "node": "n1", "job": "1", "time_limit": None, **more}
    return PilotRecord(submitted=submitted, started=started, closed=closed, **fields)  # type: ignore[arg-type]


def at(clock: str) -> float:
    return datetime.fromisoformat(f"2030-03-05 {clock}").timestamp()


def test_the_tightest_limit_counts() -> None:
    waiting, running = pilot(), pilot(started=NOW - 5.0)
    ended, earlier = pilot(submitted=NOW - 59.0, closed=NOW - 1.0), pilot(submitted=NOW - 600.0, started=NOW - 599.0)
    pilots = (waiting, running, ended, earlier)
    free = {"in_flight": None, "pilots_per_minute": None}
    assert submissions(LimitsSection(**free), pilots, NOW) is None  # type: ignore[arg-type]
    assert submissions(LimitsSection(in_flight=3, pilots_per_minute=None), pilots, NOW) == 2
    assert submissions(LimitsSection(in_flight=3, pilots_per_minute=4), pilots, NOW) == 1
    assert submissions(LimitsSection(pilots_per_minute=None, pilots_per_hour=4), pilots, NOW) == 0
    assert submissions(LimitsSection(pilots_per_minute=1), pilots, NOW) == 0


def test_a_training_gets_no_more_than_its_share_and_none_when_that_is_too_few() -> None:
    demands = (Demand(training="a", owner="ada", max_nodes=9), Demand(training="b", owner="ada", min_nodes=4, max_nodes=9))
    assert capped(LimitsSection(), demands) == demands
    assert [(each.max_nodes, each.active) for each in capped(LimitsSection(pilots_per_training=3), demands)] == [(3, True), (3, False)]


@pytest.mark.parametrize(
    ("hours", "clock", "stops"),
    [
        ("08:00-18:00", "07:59", False),
        ("08:00-18:00", "08:00", True),
        ("08:00-18:00", "18:00", False),
        ("22:00-06:00", "23:30", True),
        ("22:00-06:00", "05:59", True),
        ("22:00-06:00", "06:00", False),
        ("00:00-23:59", "12:00", True),
    ],
)
def test_quiet_hours(hours: str, clock: str, stops: bool) -> None:
    why = stopped(LimitsSection(quiet_hours=("01:00-01:01", hours)), (), at(clock), switched_off=False)
    assert why == (f"limits.quiet_hours: {hours}" if stops else None)


def test_the_days_node_seconds_begin_at_midnight() -> None:
    noon = at("12:00")
    ran = pilot(started=at("00:00") - 3_600.0, closed=at("01:00"))
    runs = pilot(started=noon - 100.0)
    assert node_seconds((ran, runs, pilot()), at("00:00"), noon) == 3_700.0
    assert stopped(LimitsSection(node_seconds_per_day=3_701.0), (ran, runs), noon, switched_off=False) is None
    why = stopped(LimitsSection(node_seconds_per_day=3_700.0), (ran, runs), noon, switched_off=False)
    assert why == "limits.node_seconds_per_day: 3700 of 3700 are used"
    assert stopped(LimitsSection(node_seconds_per_day=10.0), (ran,), noon + 86_400.0, switched_off=False) is None


def test_the_kill_switch_comes_first() -> None:
    assert stopped(LimitsSection(kill_switch="/s"), (), NOW, switched_off=True) == "limits.kill_switch: /s exists"
    assert stopped(LimitsSection(kill_switch="/s"), (), NOW, switched_off=False) is None


def test_who_said_nothing_and_was_not_asked_to_leave_died_at_once() -> None:
    assert died_at_once(pilot(), NOW, greeted=False, asked=False)
    assert not died_at_once(pilot(), NOW, greeted=True, asked=False)
    assert not died_at_once(pilot(), NOW, greeted=False, asked=True)
    assert not died_at_once(pilot(submitted=NOW - 900.0), NOW, greeted=False, asked=False)
    assert died_at_once(pilot(submitted=NOW - 900.0, started=NOW - 1.0), NOW, greeted=False, asked=False)
    assert not died_at_once(pilot(node=None), NOW, greeted=False, asked=False)


def test_a_node_is_left_alone_for_longer_each_time_and_one_good_pilot_forgives() -> None:
    def deaths(count: int) -> list[PilotRecord]:
        return [pilot(closed=NOW - 100.0 + each, reason=DIED_AT_ONCE) for each in range(count)]

    last = NOW - 100.0
    assert left_alone(deaths(2), last + 3.0) == frozenset()
    assert left_alone(deaths(3), last + 2.0 + 59.0) == {"n1"}
    assert left_alone(deaths(3), last + 2.0 + 60.0) == frozenset()
    assert left_alone(deaths(5), last + 4.0 + 239.0) == {"n1"}
    assert left_alone(deaths(50), last + 49.0 + 3_599.0) == {"n1"}
    assert left_alone(deaths(50), last + 49.0 + 3_600.0) == frozenset()
    good = pilot(closed=NOW, reason="absent from the queue")
    assert left_alone([*deaths(5), good], NOW + 1.0) == frozenset()
