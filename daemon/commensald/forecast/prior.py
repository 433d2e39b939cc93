"""How long idle fragments last before this cluster has shown its own: the prior that we ship.

Share of fragments that outlive a time, from 423,502 idle fragments of Summit's nodes in 15 days of February 2021 (FreeTrain/BFTrainer's
trace, measured in research/papers.md, section 1.5). Between points and beyond the last one the hazard is constant.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_MINUTES = np.array([0.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 240.0])
_ALIVE = np.array([1.0, 0.849, 0.598, 0.441, 0.347, 0.290, 0.195, 0.089, 0.020, 0.0005])


def prior(age_seconds: float, taus_seconds: Sequence[float]) -> NDArray[np.float64]:
    """P(free after tau | free since ``age_seconds``), for each tau."""
    taus = np.asarray(taus_seconds, dtype=np.float64)
    return np.exp(_log_alive(age_seconds + taus) - _log_alive(np.array([age_seconds])))


def _log_alive(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    times, logs = _MINUTES * 60.0, np.log(_ALIVE)
    tail_hazard = (logs[-2] - logs[-1]) / (times[-1] - times[-2])
    return np.asarray(np.interp(seconds, times, logs) - tail_hazard * np.maximum(seconds - times[-1], 0.0))
