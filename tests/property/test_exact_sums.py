"""Exact sums: any order, any grouping, the same bits, and the right ones."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from commensal.exact import BITS, HIGHEST_BIT, MOST_SHARDS, add_limbs, join_limbs, quanta

SMALLEST = 2.0 ** (HIGHEST_BIT - BITS)
floats = st.floats(-(2.0**HIGHEST_BIT), 2.0**HIGHEST_BIT, width=32)
columns = st.integers(1, 5).flatmap(lambda width: st.lists(st.lists(floats, min_size=width, max_size=width), min_size=1, max_size=24))


def limbs_of(shards: list[list[float]], steps: tuple[float, ...]) -> torch.Tensor:
    """What one member holds after computing ``shards``."""
    limbs = torch.zeros(len(steps), len(shards[0]))
    for shard in shards:
        add_limbs(torch.tensor(shard), steps, limbs)
    return limbs


def joined(limbs: torch.Tensor) -> torch.Tensor:
    out = torch.empty(limbs.shape[1])
    join_limbs(limbs, out)
    return out


@given(columns, st.randoms(use_true_random=False), st.integers(1, 6))
def test_any_members_in_any_order_get_the_same_bits(shards: list[list[float]], random: object, members: int) -> None:
    steps = quanta(len(shards))
    alone = limbs_of(shards, steps)
    mixed = list(shards)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    cut = [mixed[first::members] for first in range(members)]
    ring = torch.zeros_like(alone)
    for part in cut:
        ring += limbs_of(part, steps) if part else 0
    assert torch.equal(joined(alone), joined(ring))


@given(columns)
def test_the_sum_is_the_true_one_rounded_once(shards: list[list[float]]) -> None:
    steps = quanta(len(shards))
    found = joined(limbs_of(shards, steps))
    for value, column in zip(found.tolist(), zip(*shards, strict=True), strict=True):
        true = math.fsum(column)
        assert abs(value - true) <= abs(true) * 2**-23 + len(shards) * SMALLEST


@pytest.mark.parametrize("shards", [1, 2, 3, 8, 9, 100, MOST_SHARDS])
def test_limbs_of_the_largest_sums_stay_exact(shards: int) -> None:
    steps = quanta(shards)
    assert steps[-1] <= SMALLEST
    assert 2.0**HIGHEST_BIT / steps[0] * shards <= 2**24
    for larger, smaller in pairwise(steps):
        assert larger / smaller / 2 * shards <= 2**24


@pytest.mark.parametrize("odd", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_stays_so(odd: float) -> None:
    steps = quanta(8)
    assert not math.isfinite(joined(limbs_of([[1.0], [odd], [2.0]], steps)).item())
