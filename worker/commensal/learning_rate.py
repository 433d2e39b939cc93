"""The learning rate of a step whose batch is not the one it was tuned for: linear, square root or AdaScale."""

from __future__ import annotations

import math

RULES = ("linear", "sqrt", "adascale")


def factor(rule: str | None, batch: int, smallest: int, noise_scale: float | None = None) -> float:
    """What to multiply the rate by in a step of ``batch`` samples, when it was tuned for ``smallest``.

    ``linear`` (Goyal et al. 2017), ``sqrt`` (Krizhevsky 2014), ``adascale`` or none. ``adascale`` needs the noise scale
    (commensal/noise.py); as long as that is not known the rate stays as it is.
    """
    if rule == "adascale":
        return 1.0 if noise_scale is None else gain(batch, smallest, noise_scale)
    if rule == "linear":
        return batch / smallest
    return math.sqrt(batch / smallest) if rule == "sqrt" else 1.0


def gain(batch: int, smallest: int, noise_scale: float) -> float:
    """AdaScale's gain: how many steps of ``smallest`` one is worth, from 1 (no noise) to batch / smallest (nothing but noise).

    (variance + square) / (variance / scale + square), with the variance of a step of ``smallest`` (Johnson et al. 2020, section 3). There
    a schedule counts steps by it; ours counts each step as one.
    """
    return (noise_scale / smallest + 1) / (noise_scale / batch + 1)
