"""Throughput curves: reading, default, learning."""

from __future__ import annotations

import pytest

from commensald.allocate.curves import default, learn, rates
from commensald.allocate.observations import Observation
from commensald.allocate.throughput import Throughput

TRUTH = Throughput(alpha_c=0.01, beta_c=0.001, alpha_n=0.05, beta_n=0.002)


def seen(nodes: int, rate: float, batch: int = 64) -> Observation:
    return Observation(nodes=nodes, batch=batch, step_seconds=batch / rate)


def test_rates_are_linear_between_points_flat_beyond_and_zero_at_nothing() -> None:
    assert list(rates(((1, 10.0), (3, 20.0)), 5)) == [0.0, 10.0, 15.0, 20.0, 20.0, 20.0]
    assert list(rates(((2, 10.0),), 3)) == [0.0, 5.0, 10.0, 10.0]


def test_the_default_grows_with_a_mild_loss() -> None:
    curve = dict(default(64))
    assert curve[1] == 1.0
    assert curve[2] == pytest.approx(2 * 0.98)
    assert curve[64] / 64 == pytest.approx(0.886, abs=1e-3)
    assert list(curve.values()) == sorted(curve.values())


def test_few_sizes_give_medians_and_the_shape_of_the_default() -> None:
    curve = dict(learn([seen(2, 100.0), seen(2, 90.0), seen(2, 1.0), seen(4, 150.0)], 8))
    assert (curve[2], curve[4]) == (pytest.approx(90.0), pytest.approx(150.0))
    assert 90.0 < curve[3] < 150.0
    assert curve[1] == pytest.approx(90.0 / 2 / 0.98)
    assert curve[8] == pytest.approx(150.0 * 2 * 0.98)


def test_enough_sizes_give_the_model_beyond_what_was_seen() -> None:
    steps = [seen(nodes, float(TRUTH.rate(nodes, 512)), 512) for nodes in (1, 2, 4, 8)]
    curve = dict(learn(steps, 32))
    for nodes, close in ((3, 0.02), (6, 0.02), (12, 0.05), (16, 0.1)):
        assert curve[nodes] == pytest.approx(float(TRUTH.rate(nodes, 512)), rel=close)
    assert curve[32] < 0.8 * dict(default(32, curve[1]))[32], "the default would promise far more than the network lets through"


def test_what_is_measured_stands_against_the_model_and_bends_it_nearby() -> None:
    steps = [seen(nodes, float(TRUTH.rate(nodes, 512)) * (0.7 if nodes == 4 else 1.0), 512) for nodes in (1, 2, 4, 6, 8)]
    curve = dict(learn(steps, 8))
    assert curve[4] == pytest.approx(0.7 * float(TRUTH.rate(4, 512)))
    assert curve[5] < 0.95 * float(TRUTH.rate(5, 512))
    assert curve[8] == pytest.approx(float(TRUTH.rate(8, 512)))


def test_the_short_step_at_the_end_of_an_epoch_does_not_count_as_the_rate() -> None:
    curve = dict(learn([seen(1, 100.0, 64), seen(1, 20.0, 3), seen(2, 190.0, 64)], 2))
    assert (curve[1], curve[2]) == (pytest.approx(100.0), pytest.approx(190.0))


def test_nothing_observed_is_the_default() -> None:
    assert learn([], 4) == default(4)
