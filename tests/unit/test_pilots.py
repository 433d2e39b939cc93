"""Time limits of aimed pilots, and which windows get one."""

from __future__ import annotations

import pytest

from commensald.cluster import Facts
from commensald.decision import Policy
from commensald.forecast.pilots import STANDING_MINUTES, aimed, standing, standing_size
from commensald.forecast.windows import Forecast, Window, rows

NOW = 1_000_000.0
EXACT = Facts(product="hand", version="1")
MINUTES = Facts(product="hand", version="1", whole_minutes=True, backfill_resolution_seconds=60.0)


def window(node: str = "n1", closes: float | None = None, **more: object) -> Window:
    fields = {"opens": NOW, "reason": "by hand", **more}
    return Window(node=node, closes=None if closes is None else NOW + closes, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "closes", "limit"),
    [
        (EXACT, 100.0, 98.0),
        (EXACT, 12.0, 10.0),
        (EXACT, None, None),
        (MINUTES, 301.0, 180.0),
        (MINUTES, 302.0, 240.0),
        (MINUTES, 122.0, 60.0),
        (MINUTES, None, None),
    ],
)
def test_a_pilot_ends_before_the_planned_close(facts: Facts, closes: float | None, limit: float | None) -> None:
    assert [each.time_limit for each in aimed([window(closes=closes)], "me", facts, NOW, Policy())] == [limit]


@pytest.mark.parametrize(("facts", "closes"), [(EXACT, 11.9), (EXACT, 0.0), (MINUTES, 121.9)])
def test_a_window_that_is_too_short_gets_none(facts: Facts, closes: float) -> None:
    assert aimed([window(closes=closes)], "me", facts, NOW, Policy()) == ()


def test_the_policy_caps_an_unclaimed_window() -> None:
    (request,) = aimed([window()], "me", MINUTES, NOW, Policy(max_minutes=90.5))
    assert request.time_limit == 5400.0


def test_held_and_future_windows_get_none_and_the_longest_comes_first() -> None:
    later = window("n4", opens=NOW + 5)
    several = [window("n1", 50.0), window("n2", 500.0), window("n3", held=True), later, window("n5")]
    assert [each.node for each in aimed(several, "me", EXACT, NOW, Policy())] == ["n5", "n2", "n1"]


def test_expected_time_is_the_area_under_survival_up_to_the_close() -> None:
    curve = ((10.0, 0.8), (30.0, 0.4))
    assert window(survival=curve).expected_seconds(NOW) == pytest.approx(9.0 + 12.0)
    assert window(closes=20.0, survival=curve).expected_seconds(NOW) == pytest.approx(9.0 + 7.0)
    assert window(closes=20.0).expected_seconds(NOW) == 20.0
    assert window(closes=-5.0, survival=curve).expected_seconds(NOW) == 0.0


def test_rows_show_seconds_from_now_and_open_windows_first() -> None:
    shown = rows(Forecast(windows=(window("n1", opens=NOW + 9), window("n2", 60.0, survival=((300.0, 0.25),))), made=NOW), NOW + 1)
    assert [(each.node, each.opens_seconds, each.closes_seconds, each.alive_5min) for each in shown] == [
        ("n2", 0.0, 59.0, 0.25),
        ("n1", 8.0, None, None),
    ]


def test_as_many_stand_by_as_nodes_were_claimed_together_of_late() -> None:
    assert standing_size([], NOW, 3) == 1
    assert standing_size([], NOW, 0) == 0
    assert standing_size([NOW - 4000.0, NOW - 3990.0], NOW, 3) == 1
    assert standing_size([NOW - 900.0, NOW - 890.0, NOW - 100.0], NOW, 3) == 2
    assert standing_size([NOW - 900.0] * 9, NOW, 3) == 3


def test_standing_pilots_form_a_ladder_that_goes_on_where_it_was() -> None:
    limits = [each.time_limit for each in (*standing(2, 0, "me", Policy()), *standing(4, 2, "me", Policy()))]
    assert limits == [minutes * 60.0 for minutes in (*STANDING_MINUTES, STANDING_MINUTES[0])]
    assert all(each.node is None for each in standing(3, 0, "me", Policy()))
    assert [each.time_limit for each in standing(2, 0, "me", Policy(max_minutes=20.0))] == [900.0, 1200.0]
    assert standing(-1, 3, "me", Policy()) == ()
