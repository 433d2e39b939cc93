"""Pollux's model of a step: the formula by hand, and fitting it to noisy steps of a known truth."""

from __future__ import annotations

import numpy as np
import pytest

from commensald.allocate.fitting import fit
from commensald.allocate.observations import Observation
from commensald.allocate.throughput import Profile, Throughput

SIZES = (1, 2, 4, 8)
BATCHES = (128, 256, 512)


def observe(truth: Throughput, noise: float, sizes: tuple[int, ...] = SIZES, repeats: int = 15) -> list[Observation]:
    random = np.random.default_rng(3)
    return [
        Observation(nodes=nodes, batch=batch, step_seconds=float(truth.step_seconds(nodes, batch) * np.exp(random.normal(0.0, noise))))
        for nodes in sizes
        for batch in BATCHES
        for _ in range(repeats)
    ]


def test_a_step_is_shards_one_after_another_and_the_reduction_beside_the_last() -> None:
    model = Throughput(alpha_c=1.0, beta_c=0.5, alpha_n=3.0, beta_n=0.25, gamma=1.0, micro_batch=4)
    assert model.step_seconds(1, 16) == pytest.approx(4 * 3.0)
    assert model.step_seconds(2, 16) == pytest.approx(3.0 + 3.0 + 3.0)
    assert model.step_seconds(4, 16) == pytest.approx(3.0 + 3.0 + 2 * 0.25)
    assert model.step_seconds(3, 16) == pytest.approx(2 * 3.0 + 3.0 + 0.25)
    assert model.rate(2, 16) == pytest.approx(16 / 9.0)


def test_gamma_overlaps_and_without_micro_batches_each_member_has_one_shard() -> None:
    model = Throughput(alpha_c=1.0, beta_c=0.5, alpha_n=4.0, gamma=2.0)
    assert model.step_seconds(2, 8) == pytest.approx(5.0)
    assert model.step_seconds(1, 8) == pytest.approx(5.0)


def test_it_broadcasts() -> None:
    model = Throughput(alpha_c=1.0, beta_c=0.5)
    assert model.rate(np.array([[1], [2]]), np.array([[4, 8]])).shape == (2, 2)


def test_tables_are_read_linearly() -> None:
    tables = Profile(processing=((4, 1.0), (8, 2.0)), communication=((1, 0.0), (5, 4.0)))
    assert tables.step_seconds(1, 6) == pytest.approx(1.5)
    assert tables.step_seconds(3, 12) == pytest.approx(1.0 + 2.0)
    assert tables.rate(3, 12) == pytest.approx(4.0)
    in_rounds = Profile(processing=tables.processing, at_once=8)
    assert in_rounds.step_seconds(1, 24) == pytest.approx(6.0)
    assert in_rounds.step_seconds(2, 24) == pytest.approx(2 * 1.5)


@pytest.mark.parametrize("gamma", [1.0, 2.5, 5.0])
@pytest.mark.parametrize("micro_batch", [None, 32])
def test_the_fit_finds_the_truth_behind_noisy_steps(gamma: float, micro_batch: int | None) -> None:
    truth = Throughput(alpha_c=0.02, beta_c=0.002, alpha_n=0.1, beta_n=0.004, gamma=gamma, micro_batch=micro_batch)
    found = fit(observe(truth, noise=0.1), micro_batch)
    for nodes in (1, 2, 3, 4, 6, 8):
        for batch in (128, 200, 384, 512):
            assert found.rate(nodes, batch) == pytest.approx(float(truth.rate(nodes, batch)), rel=0.08)
    assert found.rate(12, 512) == pytest.approx(float(truth.rate(12, 512)), rel=0.15)


def test_the_fit_is_deterministic_and_ignores_a_few_slow_steps() -> None:
    truth = Throughput(alpha_c=0.02, beta_c=0.002, alpha_n=0.1, beta_n=0.004)
    steps = observe(truth, noise=0.01)
    slow = [Observation(nodes=each.nodes, batch=each.batch, step_seconds=50.0) for each in steps[::15]]
    found = fit(steps + slow)
    assert found == fit(steps + slow)
    assert found.rate(8, 512) == pytest.approx(float(truth.rate(8, 512)), rel=0.03)


def test_what_was_never_exercised_is_free() -> None:
    truth = Throughput(alpha_c=0.02, beta_c=0.002, alpha_n=0.1, beta_n=0.004)
    alone, pair = fit(observe(truth, 0.01, sizes=(1,))), fit(observe(truth, 0.01, sizes=(1, 2)))
    assert (alone.alpha_n, alone.beta_n, pair.beta_n) == (0.0, 0.0, 0.0)
    assert pair.alpha_n > 0


def test_the_penalties_choose_where_the_steps_do_not() -> None:
    """Two sizes at one batch leave gamma open: it stays at 1, and the network is what is left."""
    steps = [Observation(nodes=1, batch=64, step_seconds=1.0), Observation(nodes=2, batch=64, step_seconds=0.8)]
    found = fit(steps)
    assert found.gamma == pytest.approx(1.0, abs=0.05)
    assert found.step_seconds(2, 64) == pytest.approx(0.8, rel=0.01)


def test_nothing_to_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="no steps"):
        fit([])
