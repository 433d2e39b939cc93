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
        room = np.minimum(most - rows.sum(axis=1), quota)
        if (room + 1).sum() > largest:
            return None
        wider = ((rows[room >= count], count) for count in range(max(room) + 1))
        rows = np.concatenate([np.column_stack([each, np.full(len(each), count)]) for each, count in wider])
    return np.asarray(rows[rows.sum(axis=1) >= least])
