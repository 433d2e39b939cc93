"""Throughput curves: reading, default, learning."""

from __future__ import annotations

import pytest

from commensald.allocate.curves import default, learn, rates


def test_rates_are_linear_between_points_flat_beyond_and_zero_at_nothing() -> None:
    assert list(rates(((1, 10.0), (3, 20.0)), 5)) == [0.0, 10.0, 15.0, 20.0, 20.0, 20.0]
    assert list(rates(((2, 10.0),), 3)) == [0.0, 5.0, 10.0, 10.0]


def test_the_default_grows_with_a_mild_loss() -> None:
    curve = dict(default(64))
    assert curve[1] == 1.0
    assert curve[2] == pytest.approx(2 * 0.98)
    assert curve[64] / 64 == pytest.approx(0.886, abs=1e-3)
    assert list(curve.values()) == sorted(curve.values())


def test_learning_takes_medians_and_carries_the_shape_on() -> None:
    curve = dict(learn([(2, 100.0), (2, 90.0), (2, 1.0), (4, 150.0)], 8))
    assert (curve[2], curve[4]) == (90.0, 150.0)
    assert 3 not in curve
    assert curve[1] == pytest.approx(90.0 / 2 / 0.98)
    assert curve[8] == pytest.approx(150.0 * 2 * 0.98)


def test_nothing_observed_is_the_default() -> None:
    assert learn([], 4) == default(4)
