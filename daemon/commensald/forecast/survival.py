"""Survival: how long an idle node really stays idle, by its age.

Kaplan-Meier on landmarks (van Houwelingen 2007): at evenly spaced moments of the past, every idle node is a sample with its age and the
time that it had left, weighted so that each moment counts once. One row per fragment would flatter short fragments; measured to be
5 % worse (research/policy.md, section B). Buckets with few claims are shrunk towards the shipped prior. Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from commensald.forecast.prior import prior
from commensald.ledger import Fragment

Floats = NDArray[np.float64]

AGES_SECONDS = (0.0, 60.0, 120.0, 300.0, 600.0, 1_200.0, 2_400.0, 4_800.0)
"""Lower edges of the age buckets."""
TAUS_SECONDS = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0)
LANDMARKS = 2_000
PRIOR_STRENGTH = 20.0
"""The prior weighs as much as this many instants at which nodes were claimed."""


class Survival(msgspec.Struct, frozen=True, kw_only=True):
    """A fitted model: ``alive[bucket][k]`` is P(free after TAUS_SECONDS[k]), ``claims`` the claim instants behind it."""

    alive: tuple[tuple[float, ...], ...]
    claims: int

    def curve(self, age_seconds: float) -> tuple[tuple[float, float], ...]:
        """(seconds from now, probability of being free) for a node idle since ``age_seconds``."""
        bucket = max(bisect_right(AGES_SECONDS, age_seconds) - 1, 0)
        return tuple(zip(TAUS_SECONDS, self.alive[bucket], strict=True))

    @property
    def source(self) -> str:
        """Where the figures come from, in words."""
        return f"survival from {self.claims} claims seen here" if self.claims else "survival from the shipped prior"


def fit(fragments: Sequence[Fragment], now: float) -> Survival:
    """Fit on all ``fragments``; those that last or that no job ended are censored."""
    began = np.array([each.began for each in fragments])
    ended = np.array([now if each.ended is None else each.ended for each in fragments])
    claimed = np.array([each.claimed and each.ended is not None for each in fragments], dtype=bool)
    which, moments, weights = _landmarks(began, ended)
    bucket = np.searchsorted(AGES_SECONDS, moments - began[which], side="right") - 1
    rows = []
    for index, age in enumerate(AGES_SECONDS):
        inside = bucket == index
        mine = which[inside]
        alive = _kaplan_meier(ended[mine] - moments[inside], claimed[mine], weights[inside])
        rows.append(_shrink(alive, np.unique(ended[mine][claimed[mine]]).size, age))
    return Survival(alive=tuple(rows), claims=int(np.unique(ended[claimed]).size))


def _landmarks(began: Floats, ended: Floats) -> tuple[NDArray[np.int64], Floats, Floats]:
    """(fragment, moment, weight) of every sample; a moment's weights add up to one."""
    if not began.size:
        return np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
    first, last = float(began.min()), float(ended.max())
    moments = np.linspace(first, last, LANDMARKS, endpoint=False)
    low, high = np.searchsorted(moments, began), np.searchsorted(moments, ended)
    counts = np.maximum(high - low, 0)
    which = np.repeat(np.arange(began.size), counts)
    offset = np.arange(which.size) - np.repeat(np.cumsum(counts) - counts, counts)
    at = low[which] + offset
    pool = np.bincount(at, minlength=LANDMARKS)
    return which, moments[at], 1.0 / pool[at]


def _kaplan_meier(left: Floats, event: NDArray[np.bool_], weights: Floats) -> Floats:
    """Weighted product-limit estimate (Kaplan and Meier 1958) at TAUS_SECONDS."""
    order = np.argsort(left, kind="stable")
    left, event, weights = left[order], event[order], weights[order]
    times, starts = np.unique(left, return_index=True)
    if not times.size:
        return np.ones(len(TAUS_SECONDS))
    at_risk = np.cumsum(weights[::-1])[::-1][starts]
    died = np.add.reduceat(weights * event, starts)
    alive = np.concatenate([[1.0], np.cumprod(1.0 - died / at_risk)])
    return np.asarray(np.clip(alive[np.searchsorted(times, TAUS_SECONDS, side="right")], 0.0, 1.0))


def _shrink(alive: Floats, claims: int, age: float) -> tuple[float, ...]:
    mixed = (claims * alive + PRIOR_STRENGTH * prior(age, TAUS_SECONDS)) / (claims + PRIOR_STRENGTH)
    return tuple(float(each) for each in mixed)
