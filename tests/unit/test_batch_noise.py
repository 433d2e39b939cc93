"""Noise scale and learning rates of elastic batches."""

from __future__ import annotations

import math

import numpy as np
import pytest

from commensal.learning_rate import factor, gain
from commensal.noise import MOST_SAMPLES, Moments, estimate, noise_scale, smoothed
from commensald.allocate.elastic import efficiency

MEAN, DEVIATION = np.array([0.5, -0.25, 1.0]), np.array([1.0, 2.0, 0.5])
SQUARE, VARIANCE = float(MEAN @ MEAN), float(DEVIATION @ DEVIATION)


def step(random: np.random.Generator, sizes: list[int]) -> Moments:
    gradients = [random.normal(MEAN, DEVIATION, (size, 3)) for size in sizes]
    squares = sum(float(np.sum(each.mean(axis=0) ** 2)) for each in gradients)
    estimated = estimate(sizes, squares, float(np.sum(np.concatenate(gradients).mean(axis=0) ** 2)))
    assert estimated is not None
    return estimated


def test_two_shards_by_hand() -> None:
    """Gradients 1 and 3 of one sample each: mean 2, variance 2."""
    assert estimate([1, 1], 10.0, 4.0) == Moments(3.0, 2.0, 1.0)


@pytest.mark.parametrize("sizes", [[4, 4], [3, 4, 4, 4], [1, 7]])
def test_the_estimates_are_unbiased_whatever_the_shards(sizes: list[int]) -> None:
    random = np.random.default_rng(0)
    steps = [step(random, sizes) for _ in range(6000)]
    for values, truth in (([each.square for each in steps], SQUARE), ([each.variance for each in steps], VARIANCE)):
        assert abs(np.mean(values) - truth) < 4 * np.std(values) / math.sqrt(len(values))
        assert np.std(values) / math.sqrt(len(values)) < 0.1 * truth


def test_one_shard_shows_no_variance() -> None:
    assert estimate([8], 1.0, 1.0) is None


def test_smoothing_finds_the_scale_and_its_first_steps_are_not_pulled_to_nothing() -> None:
    random, moments = np.random.default_rng(1), Moments()
    assert noise_scale(moments) is None
    first = step(random, [64, 64])
    assert noise_scale(smoothed(moments, first)) == pytest.approx(first.variance / first.square)
    for _ in range(3000):
        moments = smoothed(moments, step(random, [16, 16, 16]), decay=0.999)
    assert noise_scale(moments) == pytest.approx(VARIANCE / SQUARE, rel=0.1)


def test_smoothing_forgets() -> None:
    moments = smoothed(Moments(1.0, 100.0, 1.0), Moments(1.0, 1.0, 1.0), decay=0.0)
    assert noise_scale(moments) == 1.0


def test_noise_that_hides_the_gradient_is_large_and_none_is_zero() -> None:
    assert noise_scale(Moments(-0.1, 5.0, 1.0)) == MOST_SAMPLES
    assert noise_scale(Moments(1.0, -0.5, 1.0)) == 0.0


def test_rates_follow_the_batch_by_the_rule() -> None:
    assert [factor(rule, 512, 128) for rule in ("linear", "sqrt", "adascale", None)] == [4.0, 2.0, 1.0, 1.0]
    assert factor("adascale", 512, 128, 0.0) == 1.0
    assert factor("adascale", 512, 128, 256.0) == pytest.approx(2.0)
    assert factor("adascale", 512, 128, MOST_SAMPLES) == pytest.approx(4.0, rel=1e-5)


def test_the_gain_of_a_step_is_the_efficiency_of_its_samples() -> None:
    """AdaScale's gain over the growth of the batch is Pollux's efficiency, which the daemon allocates by."""
    for batch in (32, 100, 4096):
        assert gain(batch, 32, 77.0) / (batch / 32) == pytest.approx(float(efficiency(np.array(batch), 32, 77.0)))
