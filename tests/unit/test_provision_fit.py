"""The loss model recovered from synthetic curves with noise, and the band around it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from provisioning import pace

from commensald.allocate.provision.fit import Fit, Observed, TooFew, fit
from commensald.allocate.provision.loss import Loss
from commensald.allocate.provision.pace import Pace

TRUE = Loss(g1=900.0, g2=-0.2, g3=1800.0, g4=0.4, g5=0.5)
CLUSTERS = ((512.0, 1.0, 0.0), (1024.0, 2.0, 0.71), (1400.0, 4.0, 0.87), (1400.0, 4.0, 0.6), (2048.0, 7.0, 0.93))
"""Batch, members, R."""
UNSEEN = ((1400.0, 8.0, 0.93), (900.0, 6.0, 0.8), (1800.0, 3.0, 0.5))


def curves(true: Loss, clusters: Sequence[tuple[float, float, float]], noise: float, points: int = 60, last: float = 15000.0) -> Observed:
    chance = np.random.default_rng(7)
    step = np.tile(np.linspace(50.0, last, points), len(clusters))
    columns = [np.repeat([each[index] for each in clusters], points) for index in range(3)]
    there = Pace(np.ones(step.size), *columns)
    return Observed(step, np.asarray(true.value(there, step)) + noise * chance.standard_normal(step.size), there)


def errors(found: Fit, true: Loss = TRUE, goal: float = 0.8) -> list[float]:
    """Relative, of the steps to a loss, on clusters that were not seen."""
    there = [pace(batch, members, spread) for batch, members, spread in UNSEEN]
    return [abs(float(found.loss.steps(goal, each)[0] / true.steps(goal, each)[0]) - 1) for each in there]


def test_without_noise_every_coefficient_comes_back() -> None:
    found = fit(curves(TRUE, CLUSTERS, noise=0.0), replicates=1)
    for name in ("g1", "g2", "g3", "g4", "g5"):
        assert getattr(found.loss, name) == pytest.approx(getattr(TRUE, name), rel=1e-3)
    assert found.standard_error < 1e-5


def test_with_noise_the_steps_on_other_clusters_come_back_and_need_the_convergence_coefficient() -> None:
    seen = curves(TRUE, CLUSTERS, noise=0.02)
    with_it, without = fit(seen, replicates=1), fit(seen, "sqrt", replicates=1)
    assert max(errors(with_it)) < 0.05
    assert with_it.standard_error == pytest.approx(0.02, rel=0.15)
    assert max(errors(without)) > 0.10
    assert without.standard_error > 2 * with_it.standard_error


@pytest.mark.parametrize("form", ["sqrt", "synchronous"])
def test_the_other_forms(form: str) -> None:
    true = Loss(g1=900.0, g2=-0.2, g3=1800.0, g5=0.5, form=form)  # type: ignore[arg-type]
    found = fit(curves(true, CLUSTERS, noise=0.01), form, replicates=1)  # type: ignore[arg-type]
    assert max(errors(found, true)) < 0.05


def test_the_band_holds_the_truth_and_widens_with_noise_and_distance() -> None:
    there = pace(1400.0, 8.0, 0.93)

    def width(noise: float, goal: float, points: int = 60) -> float:
        steps = fit(curves(TRUE, CLUSTERS, noise, points)).band.steps(goal, there)
        low, high = np.quantile(steps, [0.01, 0.99])
        assert low < TRUE.steps(goal, there)[0] < high
        return float((high - low) / steps.mean())

    assert width(0.01, 0.8) < width(0.04, 0.8) < width(0.04, 0.6)
    assert width(0.04, 0.8) < width(0.04, 0.8, points=15)


def test_one_batch_says_nothing_of_another() -> None:
    true = Loss(g1=900.0, g2=0.0, g3=1800.0, g5=0.5, form="synchronous")
    found = fit(curves(true, [(256.0, 1.0, 0.0)], noise=0.005), "synchronous", replicates=2)
    assert found.loss.g2 == 0.0
    assert np.all(np.asarray(found.band.g2) == 0.0)
    assert found.loss.steps(0.7, pace(256.0))[0] == pytest.approx(true.steps(0.7, pace(256.0))[0], rel=0.05)


def test_the_floor_is_never_below_zero() -> None:
    falling = Observed(np.arange(1.0, 31.0), 3.0 - 0.1 * np.arange(1.0, 31.0), pace(times=30))
    found = fit(falling, "synchronous", replicates=20)
    assert float(found.loss.g5) >= 0.0
    assert np.all(np.asarray(found.band.g5) >= 0.0)


def test_a_seed_gives_the_same_band() -> None:
    seen = curves(TRUE, CLUSTERS, noise=0.02, points=10)
    first, again, other = (np.asarray(fit(seen, replicates=5, seed=seed).band.g5) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_too_few() -> None:
    with pytest.raises(TooFew, match="9 losses are too few for 5 coefficients: at least 10"):
        fit(curves(TRUE, [(512.0, 1.0, 0.0), (1024.0, 2.0, 0.71), (1400.0, 4.0, 0.87)], noise=0.0, points=3))
