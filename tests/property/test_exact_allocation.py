"""The dynamic programme against every possible allocation, and the rules for nodes."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commensald.allocate.exact import counts, value
from commensald.allocate.floors import kept
from commensald.allocate.placing import own, place
from commensald.decision import Demand

POOL = [f"n{index}" for index in range(7)]


@st.composite
def demands(draw: st.DrawFn) -> list[Demand]:
    holders = draw(st.lists(st.integers(0, 3), min_size=len(POOL), max_size=len(POOL)))
    return [
        draw(demand(index, frozenset(n for n, j in zip(POOL, holders, strict=True) if j == index)))
        for index in range(draw(st.integers(1, 3)))
    ]


@st.composite
def demand(draw: st.DrawFn, index: int, nodes: frozenset[str]) -> Demand:
    least = draw(st.integers(1, 4))
    rates = draw(st.lists(st.floats(0.0, 50.0), min_size=1, max_size=5))
    return Demand(
        training=f"t{index}",
        owner="me",
        min_nodes=least,
        max_nodes=least + draw(st.integers(0, 4)),
        floor_nodes=draw(st.sampled_from([0, 0, 1, 3])),
        weight=draw(st.floats(0.1, 5.0)),
        curve=tuple((size, rate) for size, rate in enumerate(rates, start=1)),
        stall_seconds=draw(st.floats(0.0, 60.0)),
        warmup_seconds=draw(st.floats(0.0, 60.0)),
        nodes=nodes,
    )


@settings(max_examples=150, deadline=None)
@given(demands(), st.integers(0, 7))
def test_it_equals_brute_force(wanted: list[Demand], nodes: int) -> None:
    held = [min(len(each.nodes), nodes) for each in wanted]
    floors = kept(wanted, nodes)
    values = [value(each, now, nodes, 120.0) for each, now in zip(wanted, held, strict=True)]
    best = max(
        sum(float(worth[n]) for worth, n in zip(values, sizes, strict=True))
        for sizes in product(range(nodes + 1), repeat=len(wanted))
        if sum(sizes) <= nodes and all(size >= floor for size, floor in zip(sizes, floors, strict=True))
    )
    found = counts(wanted, held, nodes, 120.0)
    assert all(size >= floor for size, floor in zip(found, floors, strict=True))
    assert sum(float(worth[n]) for worth, n in zip(values, found, strict=True)) == pytest.approx(best, rel=1e-9, abs=1e-7)


@settings(max_examples=150, deadline=None)
@given(demands(), st.sets(st.sampled_from(POOL)), st.lists(st.floats(0, 1e4), min_size=7, max_size=7))
def test_nodes_follow_the_counts_and_nobody_migrates(wanted: list[Demand], up: set[str], lasts: list[float]) -> None:
    available = frozenset(up)
    held = own(wanted, available)
    sizes = counts(wanted, [len(held[each.training]) for each in wanted], len(available), 120.0)
    placed = place(wanted, sizes, available, dict(zip(POOL, lasts, strict=True)))
    assert [len(placed[each.training]) for each in wanted] == list(sizes)
    assert sum(sizes) == len(frozenset().union(*placed.values())) <= len(available)
    for each, size in zip(wanted, sizes, strict=True):
        before, after = held[each.training], placed[each.training]
        assert size == 0 or each.min_nodes <= size <= each.max_nodes
        assert after <= available
        assert before <= after or after <= before


def test_a_rescale_that_does_not_pay_within_the_look_ahead_is_not_made() -> None:
    slow = Demand(training="t", owner="me", max_nodes=8, curve=((4, 100.0), (5, 101.0)), stall_seconds=5.0)
    assert counts([slow], [4], 5, 120.0) == (4,)
    assert counts([slow], [4], 5, 1200.0) == (5,)


def test_equal_worth_means_no_change() -> None:
    twins = [Demand(training=name, owner="me", max_nodes=4, curve=((4, 4.0),)) for name in ("a", "b")]
    for held in [(4, 0), (1, 3), (2, 2), (0, 4)]:
        assert counts(twins, held, 4, 120.0) == held


def test_what_will_be_taken_soonest_is_released_and_what_lasts_is_gained() -> None:
    pair = [Demand(training="a", owner="me", nodes=frozenset({"n0", "n1", "n2"})), Demand(training="b", owner="me")]
    lasts = {"n0": 30.0, "n1": 10.0, "n2": 20.0, "n3": 5.0, "n4": 15.0}
    assert place(pair, [1, 2], frozenset(POOL[:5]), lasts) == {"a": {"n0"}, "b": {"n2", "n4"}}


def test_warmup_is_charged_to_new_nodes_at_their_share_of_the_new_rate() -> None:
    cold = Demand(training="t", owner="me", max_nodes=4, curve=((4, 40.0),), stall_seconds=2.0, warmup_seconds=10.0)
    assert list(value(cold, 2, 4, 100.0)) == [-40.0, 960.0, 2000.0, 3000.0 - 40.0 - 100.0, 4000.0 - 40.0 - 200.0]


@settings(deadline=None)
@given(st.lists(st.integers(0, 8), min_size=2, max_size=60), st.floats(0.01, 100.0))
def test_rounding_moves_no_node(held: list[int], rate: float) -> None:
    """On straight lines every split is worth the same but for rounding."""
    alike = [Demand(training=f"t{index}", owner="me", max_nodes=40, curve=((40, 40 * rate),)) for index in range(len(held))]
    assert counts(alike, held, sum(held), 120.0) == tuple(held)


def test_in_a_large_pool_nobody_is_beyond_a_kink_while_another_is_below() -> None:
    curve = tuple((2**power, 2.0**power * 0.9**power) for power in range(7))
    many = [Demand(training=f"t{index}", owner="me", max_nodes=64, curve=curve) for index in range(50)]
    sizes = counts(many, [0] * 50, 1000, 120.0)
    assert sum(sizes) == 1000
    assert set(sizes) <= set(range(16, 33))


def test_nodes_that_leave_soon_are_worth_little_where_their_life_counts() -> None:
    stays = Demand(training="t", owner="me", max_nodes=8, curve=((8, 80.0),), stall_seconds=5.0, node_seconds=(600.0, 600.0, 4.0))
    assert list(value(stays, 2, 4, 120.0)) == [-100.0, 5900.0, 12000.0, 12040.0 - 100.0, 12080.0 - 100.0]
    assert counts([stays], [2], 8, 120.0) == (8,)
    assert counts([stays], [2], 4, 120.0) == (2,)


def test_a_training_below_its_minimum_has_no_rate_to_lose() -> None:
    short = Demand(training="t", owner="me", min_nodes=3, max_nodes=4, curve=((4, 4.0),), stall_seconds=50.0)
    assert list(value(short, 2, 4, 10.0)) == [0.0, -float("inf"), -float("inf"), 30.0, 40.0]


def test_a_longer_curve_than_the_pool_and_more_holders_than_nodes() -> None:
    wide = Demand(training="t", owner="me", max_nodes=64, curve=tuple((n, float(n)) for n in range(1, 65)))
    assert counts([wide], [10], 3, 120.0) == (3,)
    assert counts([], [], 3, 120.0) == ()
