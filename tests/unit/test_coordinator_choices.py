"""Choices about members: who gives its state, who is dropped, when to save, who waits outside."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commensal.messages import Generation, Report, Saved, SettledStep
from commensald.coordinator import Limits, saving
from commensald.coordinator.choices import cover, order, seats, source_of
from commensald.coordinator.history import History
from commensald.coordinator.pace import Seen
from commensald.coordinator.quarantine import Quarantine
from commensald.coordinator.saving import SaveClock

PAIRS = st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"), max_size=3), max_size=5)


def test_the_most_advanced_survivor_gives_its_state() -> None:
    assert source_of({"a": 6, "b": 7, "c": None}, {"a": 90, "b": 0, "c": 99}) == ("b", 7)


def test_without_a_survivor_the_best_offer_from_disk_counts() -> None:
    assert source_of({"a": None, "b": None}, {"a": 3, "b": 40}) == ("b", 40)


def test_newcomers_never_come_before_who_knows_the_steps_before() -> None:
    assert order(("a", "b", "c", "d"), "c", ("b", "c", "d")) == ("c", "b", "d", "a")


def test_a_member_of_unknown_speed_counts_as_the_mean() -> None:
    assert [seat.speed for seat in seats(("a", "b", "c"), dict.fromkeys("abc", "x"), {"a": 10.0, "b": 30.0, "c": None})] == [
        10.0,
        30.0,
        20.0,
    ]
    assert seats(("a",), {"a": "x"}, {})[0].speed == 1.0


@given(PAIRS)
def test_a_cover_touches_every_bad_pair_and_none_is_smaller(unreachable: dict[str, list[str]]) -> None:
    pairs = [{one, other} for one, others in unreachable.items() for other in others if one != other]
    found = cover(unreachable)
    assert all(pair & found for pair in pairs)
    names = sorted({name for pair in pairs for name in pair})
    smaller = [set(chosen) for size in range(len(found)) for chosen in combinations(names, size)]
    assert not any(all(pair & chosen for pair in pairs) for chosen in smaller)


def test_a_cover_keeps_those_in_the_ring_where_it_can() -> None:
    assert cover({"old": ["new"]}, keep_first=("old",)) == {"new"}


def test_a_member_is_kept_out_after_failures_in_a_row_and_for_a_while() -> None:
    quarantine = Quarantine(Limits(quarantine_failures=2, quarantine_seconds=10.0))
    assert not quarantine.failed("a", 0.0)
    quarantine.succeeded("a")
    assert not quarantine.failed("a", 1.0)
    assert quarantine.failed("a", 2.0)
    assert quarantine.holds("a", 11.9)
    assert not quarantine.holds("a", 12.0)


def test_the_interval_is_youngs() -> None:
    assert saving.interval(0.5, losses=1, observed_seconds=3600.0) == pytest.approx(math.sqrt(2 * 0.5 * (1800 + 3600) / 2))
    assert saving.interval(0.0, 0, 0.0) == saving.SHORTEST_SECONDS


def test_a_save_is_asked_for_when_due_and_again_when_no_answer_comes() -> None:
    clock = SaveClock(0.0)
    assert not clock.due(19.0)
    assert clock.due(20.0)
    assert not clock.due(21.0)
    assert clock.due(60.0)
    clock.saved(seconds=1.0, stall_seconds=0.01, now=61.0)
    assert not clock.due(65.9)
    assert clock.due(61.0 + saving.interval(0.01, 0, 61.0))


class Counts:
    """Settled counts in memory."""

    def __init__(self) -> None:
        self.kept = (0, 0)

    def record_settled(self, training: str, settled: int, samples: int) -> None:
        self.kept = (settled, samples)

    def settled(self, training: str) -> tuple[int, int]:
        return self.kept

    def record_pace(self, training: str, seen: Seen) -> None:
        self.seen = seen

    def pace(self, training: str) -> Seen:
        return Seen()


def settled_step(number: int, samples: int = 2) -> SettledStep:
    generation = Generation(1, 1)
    return SettledStep(
        step=number, generation=generation, epoch=0, samples=tuple(range(samples)), loss=1.0, closed_ago=0.0, nodes=1, batch=2
    )


def test_each_settled_step_is_told_once_however_often_it_is_reported() -> None:
    events: list[tuple[str, object]] = []
    counts = Counts()
    history = History("t", counts, lambda kind, **fields: events.append((kind, fields.get("step"))), 0.0)
    history.report(Report(member="a", steps=(settled_step(1), settled_step(2))))
    history.report(Report(member="b", steps=(settled_step(2), settled_step(3))))
    assert events == [("step", 1), ("step", 2), ("step", 3)]
    assert counts.kept == (3, 6)


def test_steps_beyond_the_state_that_a_ring_starts_from_are_lost() -> None:
    told: list[dict[str, object]] = []
    counts = Counts()
    history = History("t", counts, lambda kind, **fields: told.append({"kind": kind, **fields}), 0.0)
    history.report(Report(member="a", steps=tuple(settled_step(number) for number in range(1, 6))))
    history.saved(Saved(member="a", step=3, seconds=0.1, stall_seconds=0.0, size_bytes=1), 1.0)
    history.began(3)
    assert (history.settled, history.samples, history.steps_lost) == (3, 6, 2)
    assert told[-1] == {"kind": "steps.lost", "training": "t", "first": 4, "last": 5}
    assert (counts.seen.steps_lost, counts.seen.checkpoint) == (2, 3)
    assert [point.step for point in counts.seen.losses] == [1, 2, 3], "what is kept has not the lost steps' losses"
    history.began(7)
    assert history.settled == 3, "steps closed but not yet reported are still to come"
