"""Sums whose bits do not depend on the order of adding, so that any membership trains the same bits.

A float32 is split into *limbs*: whole multiples of fixed powers of two (*quanta*), so small that the sum of all shards' limbs stays below
2**24 and is exact in float32, in any order, over any transport. Together the limbs cover the bits 2**-60 to 2**20; what is smaller is
rounded to the nearest multiple, what is larger is summed as floats are. It is the one-bin form of reproducible summation (Demmel and
Nguyen 2015) with bins given beforehand, which needs no second pass over the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

HIGHEST_BIT, BITS = 20, 80
MOST_SHARDS = 4096
EXACT_PARAMETERS = 1 << 18
"""Up to so many parameters sums are exact unless asked otherwise: the limbs are 4 MiB then."""
_MANTISSA_BITS = 24
_BLOCK = 1 << 17
"""Words at once: what one pass writes is in the cache for the next."""


def quanta(shards: int) -> tuple[float, ...]:
    """The powers of two of the limbs for sums over ``shards``, the largest first."""
    width = _MANTISSA_BITS - math.ceil(math.log2(shards))
    return tuple(2.0 ** (HIGHEST_BIT - width * (limb + 1)) for limb in range(math.ceil(BITS / width)))


def add_limbs(values: torch.Tensor, steps: Sequence[float], limbs: torch.Tensor) -> None:
    """Add ``values``, shape (n,), to ``limbs``, shape (len(steps), n); ``values`` are used up."""
    for block, places in zip(torch.split(values, _BLOCK), torch.split(limbs, _BLOCK, 1), strict=True):
        for quantum, limb in zip(steps, places, strict=True):
            shift = 1.5 * 2.0 ** (_MANTISSA_BITS - 1) * quantum  # a float32 of this size has no bits below the quantum
            part = (block + shift).sub_(shift)
            limb.add_(part)
            block.sub_(part)


def join_limbs(limbs: torch.Tensor, out: torch.Tensor) -> None:
    """The sums behind ``limbs``, smallest first in float64, rounded once, into ``out``, shape (n,)."""
    total = torch.zeros(out.shape, dtype=torch.float64, device=out.device)
    for limb in reversed(limbs.unbind()):
        total.add_(limb)
    out.copy_(total)
