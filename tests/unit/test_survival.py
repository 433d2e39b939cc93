"""Survival of idle nodes: the prior, and what is learnt from fragments with a known law."""

from __future__ import annotations

import numpy as np
import pytest

from commensald.forecast.prior import prior
from commensald.forecast.survival import AGES_SECONDS, TAUS_SECONDS, fit
from commensald.ledger import Fragment

NOW = 1_000_000.0


def fragments(lengths: list[float], claimed: bool = True) -> list[Fragment]:
    began = np.linspace(NOW - 500_000, NOW - 20_000, len(lengths))
    pairs = zip(began, lengths, strict=True)
    return [Fragment(node=f"n{k}", began=float(at), ended=float(at + length), claimed=claimed) for k, (at, length) in enumerate(pairs)]


def test_the_prior_is_the_published_table_and_conditions_on_age() -> None:
    assert prior(0.0, [120.0, 600.0, 3600.0]) == pytest.approx([0.849, 0.441, 0.089])
    assert prior(600.0, [3000.0]) == pytest.approx([0.089 / 0.441])
    assert prior(100_000.0, [7200.0]) == pytest.approx([0.0005 / 0.020])


def test_without_fragments_it_is_the_prior_and_says_so() -> None:
    model = fit([], NOW)
    assert [alive for _, alive in model.curve(0.0, 1)] == pytest.approx(list(prior(0.0, TAUS_SECONDS)))
    assert "prior" in model.source


@pytest.mark.parametrize("age", [0.0, 90.0, 700.0])
def test_a_constant_hazard_is_found_again(age: float) -> None:
    lengths = np.random.default_rng(1).exponential(900.0, 6_000)
    model = fit(fragments([float(each) for each in lengths]), NOW)
    expected = [float(np.exp(-tau / 900.0)) for tau in TAUS_SECONDS]
    assert [alive for _, alive in model.curve(age, 11)] == pytest.approx(expected, abs=0.08)
    assert "claims seen here" in model.source


def test_nodes_that_no_job_claimed_are_censored() -> None:
    drained = fit(fragments([200.0] * 400, claimed=False), NOW)
    assert drained.claims == 0
    assert [alive for _, alive in drained.curve(0.0, 1)] == pytest.approx(list(prior(0.0, TAUS_SECONDS)))


def test_a_claim_of_many_nodes_at_once_is_one_event() -> None:
    at_once = [Fragment(node=f"n{k}", began=NOW - 900, ended=NOW - 600, claimed=True) for k in range(500)]
    assert fit(at_once, NOW).claims == 1


def batch(size: int, began: float, seconds: float) -> list[Fragment]:
    return [Fragment(node=f"n{node}", began=began, ended=began + seconds, claimed=True) for node in range(size)]


def test_a_crowded_pool_fares_worse_than_a_small_one() -> None:
    """Alone, a node stays for an hour; twenty nodes that come free together are taken after a quarter of one."""
    seen = []
    for period in range(100):
        began = NOW - 10_000.0 * (period + 1)
        seen += batch(1, began, 3_600.0)
        for turn in range(6):
            seen += batch(20, began + 4_000.0 + 1_000.0 * turn, 900.0 + turn)
    model = fit(seen, NOW)
    assert dict(model.curve(0.0, 20))[1_800.0] < 0.1 < 0.4 < dict(model.curve(0.0, 1))[1_800.0]


def test_each_moment_counts_once_however_many_nodes_are_idle() -> None:
    """As often one node comes free for an hour as twenty come for three minutes: half of the moments at that age see an hour ahead."""
    seen = []
    for period in range(100):
        began = NOW - 10_000.0 * (period + 1)
        seen += batch(1, began, 3_600.0) + batch(20, began + 5_000.0 + 7.0 * period, 180.0 + period)
    model = fit(seen, NOW)
    assert [dict(model.curve(0.0, pool))[300.0] for pool in (1, 20)] == pytest.approx([0.5, 0.5], abs=0.2)


def test_curves_never_rise() -> None:
    model = fit(fragments([float(10 + 37 * k % 5000) for k in range(500)]), NOW)
    for age in AGES_SECONDS:
        alive = [each for _, each in model.curve(age, 3)]
        assert alive == sorted(alive, reverse=True)
        assert all(0.0 <= each <= 1.0 for each in alive)
