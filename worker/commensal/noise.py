"""The gradient noise scale: how many samples a step takes before more of them tell little that is new.

Estimated from the shards of each step, at the price of one more word in the reduction: McCandlish et al. 2018 (appendix A.1), as AdaScale
(Johnson et al. 2020) and Pollux (Qiao et al. 2021) use it. Everything depends on the shards, not on who computed them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

MOST_SAMPLES = 1e9
"""A noise scale beyond this is as good as infinite; the mean gradient is then lost in the noise."""


class Moments(msgspec.Struct, frozen=True, array_like=True):
    """Of the gradient: ``square``, the squared norm of its mean; ``variance``, the trace of the covariance over single samples.

    Each is a weighted sum of unbiased estimates, ``weight`` the sum of the weights; one step's may be negative.
    """

    square: float = 0.0
    variance: float = 0.0
    weight: float = 0.0


def estimate(sizes: Sequence[int], shard_squares: float, mean_square: float) -> Moments | None:
    """Unbiased, from one step. ``None`` with a single shard, which shows no variance.

    ``sizes`` are the samples of each shard, ``shard_squares`` the sum over shards of the squared norm of a shard's mean gradient,
    ``mean_square`` the squared norm of the mean gradient over all samples, before clipping.
    """
    count, samples = len(sizes), sum(sizes)
    if count < 2:
        return None
    inverse = sum(1 / size for size in sizes) / count
    variance = (shard_squares / count - mean_square) / (inverse - 1 / samples)
    return Moments(mean_square - variance / samples, variance, 1.0)


def smoothed(before: Moments, step: Moments, decay: float = 0.99) -> Moments:
    """``before`` with another step, which weighs 1 / (1 - decay) steps later about a third; the first steps are not pulled towards 0."""
    return Moments(decay * before.square + step.square, decay * before.variance + step.variance, decay * before.weight + step.weight)


def noise_scale(moments: Moments) -> float | None:
    """In samples, at most MOST_SAMPLES: variance over square (the "simple" scale). ``None`` before anything was seen."""
    if not moments.weight:
        return None
    variance = max(moments.variance, 0.0)
    return min(variance / moments.square, MOST_SAMPLES) if moments.square > 0 else MOST_SAMPLES
