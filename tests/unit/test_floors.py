"""Floors, by hand: who has nodes for sure, and who goes without when not all fit."""

from __future__ import annotations

from commensald.allocate.choice import allocator
from commensald.allocate.exact import counts
from commensald.allocate.floors import fair, kept
from commensald.decision import Demand, Policy


def training(name: str, floor: int = 0, least: int = 1, most: int = 8, weight: float = 1.0, pace: float = 1.0) -> Demand:
    curve = tuple((nodes, pace * nodes) for nodes in range(1, most + 1))
    return Demand(training=name, owner="me", min_nodes=least, max_nodes=most, floor_nodes=floor, weight=weight, curve=curve)


def test_a_slow_training_keeps_its_floor_beside_a_fast_one() -> None:
    assert counts([training("slow"), training("fast", pace=9.0)], [0, 0], 8, 120.0) == (0, 8)
    assert counts([training("slow", 3), training("fast", pace=9.0)], [0, 0], 8, 120.0) == (3, 5)


def test_a_floor_is_no_less_than_the_minimum_and_no_more_than_the_maximum() -> None:
    assert kept([training("a", 1, least=4), training("b", 20), training("c")], 50) == (4, 8, 0)


def test_of_floors_that_do_not_fit_the_lightest_goes_and_of_equals_the_last() -> None:
    three = [training("a", 3), training("b", 3, weight=0.5), training("c", 3)]
    assert kept(three, 9) == (3, 3, 3)
    assert kept(three, 8) == (3, 0, 3)
    assert kept(three, 5) == (3, 0, 0)
    assert kept(three, 2) == (0, 0, 0)


def test_a_fair_share_is_by_weight_rounded_down_and_none_below_the_minimum() -> None:
    asked = [training("a", weight=3.0), training("b", 2), training("c", least=4)]
    assert [each.floor_nodes for each in fair(asked, 10, 1.0)] == [6, 2, 0]
    assert [each.floor_nodes for each in fair(asked, 10, 0.5)] == [3, 2, 0]


def test_the_policy_sets_fair_floors_for_the_allocator() -> None:
    pair = [training("slow"), training("fast", pace=9.0)]
    assert allocator(Policy())(pair, [0, 0], 8, 120.0) == (0, 8)
    assert allocator(Policy(fair_share=0.5))(pair, [0, 0], 8, 120.0) == (2, 6)
