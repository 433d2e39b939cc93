"""Every mix there is, for comparison with Algorithm 1: what the paper calls Srifty+, exact and slow where quotas are large."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from commensald.allocate.provision.pace import Mixes

LARGEST = 200_000
"""Rows at most: some tenths of a second."""


def every(quotas: Sequence[int], least: int, most: int, largest: int = LARGEST) -> Mixes | None:
    """All mixes of ``least`` to ``most`` nodes within ``quotas``; ``None`` where there are more than ``largest``."""
    rows: Mixes = np.zeros((1, 0), np.int64)
    for quota in quotas:
        counts = np.arange(min(quota, most) + 1)
        if len(rows) * counts.size > largest:
            return None
        rows = np.column_stack([np.repeat(rows, counts.size, axis=0), np.tile(counts, len(rows))])
        rows = rows[rows.sum(axis=1) <= most]
    return np.asarray(rows[rows.sum(axis=1) >= least])
