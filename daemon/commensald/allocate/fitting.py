"""Fitting Pollux's model of a step to the steps that were seen."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

import numpy as np

from commensald.allocate.observations import Observation
from commensald.allocate.throughput import Floats, Throughput

_SMALLEST, _LARGEST = 1e-8, 1e4
"""Bounds of every alpha and beta, in seconds."""
_GAMMAS = (1.0, 2.0, 5.0)
"""Where searches begin: the loss has several valleys along gamma."""
_ROUNDS = 60
_GAMMA_WEIGHT, _SLOPE_WEIGHT = 1e-3, 1e-2


def fit(observed: Iterable[Observation], micro_batch: int | None = None) -> Throughput:
    """The model behind ``observed`` steps: least RMSLE + 1e-3 (gamma - 1)^2 + 1e-2 (beta_n / alpha_n)^2 (research/papers.md 4.1).

    Each (nodes, batch) counts once, by its median. What was never exercised is 0: the network with only single nodes, beta_n below three.
    Deterministic. Raises ValueError when nothing was observed.
    """
    seconds = medians(observed)
    if not seconds:
        raise ValueError("no steps to fit a throughput model to")
    nodes, batch = np.array(list(seconds), np.float64).T
    problem = _Problem(nodes, batch, np.array(list(seconds.values())), micro_batch)
    return problem.model(min((problem.search(problem.start(gamma)) for gamma in _GAMMAS), key=problem.loss))


def medians(observed: Iterable[Observation]) -> dict[tuple[int, int], float]:
    """Step seconds by (nodes, batch); the median, because a step now and then meets somebody else's load."""
    taken: dict[tuple[int, int], list[float]] = {}
    for each in observed:
        taken.setdefault((each.nodes, each.batch), []).append(each.step_seconds)
    return {key: median(values) for key, values in sorted(taken.items())}


class _Problem:
    """Points are [log alpha_c, log beta_c, log alpha_n, log beta_n, gamma]; those not exercised stay at their lower bounds."""

    def __init__(self, nodes: Floats, batch: Floats, seconds: Floats, micro_batch: int | None) -> None:
        self._nodes, self._batch, self._seconds, self._micro = nodes, batch, seconds, micro_batch
        self._low = np.array([np.log(_SMALLEST)] * 4 + [1.0])
        self._high = np.array([np.log(_LARGEST)] * 4 + [10.0])
        most = nodes.max()
        self._free = np.array([True, True, most > 1, most > 2, most > 1])

    def model(self, point: Floats) -> Throughput:
        used = np.where(self._free[:4], np.exp(point[:4]), 0.0).tolist()
        names = ("alpha_c", "beta_c", "alpha_n", "beta_n")
        return Throughput(**dict(zip(names, used, strict=True)), gamma=float(point[4]), micro_batch=self._micro)

    def loss(self, point: Floats) -> float:
        """The objective."""
        return float(np.sqrt(np.mean(self._errors(point) ** 2)) + np.sum(self._penalties(point) ** 2))

    def start(self, gamma: float) -> Floats:
        """Half of the shortest step is fixed, the rest goes with the samples; the network takes a tenth."""
        least, each = self._seconds.min(), (self._seconds * self._nodes / self._batch).min()
        point = np.log([least / 2, each / 2, least / 10, least / 100])
        return np.clip(np.where(self._free, [*point, gamma], self._low), self._low, self._high)

    def search(self, point: Floats) -> Floats:
        """Levenberg and Marquardt's descent; the root in RMSLE is met by reweighting at each round."""
        damping, loss = 1e-2, self.loss(point)
        for _ in range(_ROUNDS):
            trial = np.clip(point - self._step(point, damping), self._low, self._high)
            gained = loss - self.loss(trial)
            damping = damping / 5 if gained > 0 else damping * 4
            if gained > 0:
                point, loss = trial, loss - gained
            if damping > 1e8 or 0 < gained < 1e-6:
                break
        return point

    def _step(self, point: Floats, damping: float) -> Floats:
        scale = 1 / np.sqrt(2 * self._seconds.size * max(float(np.sqrt(np.mean(self._errors(point) ** 2))), 1e-6))
        residuals, jacobian = self._residuals(point, scale), np.zeros((self._seconds.size + 2, 5))
        for index in np.flatnonzero(self._free):
            ahead = point.copy()
            ahead[index] += 1e-5
            jacobian[:, index] = (self._residuals(ahead, scale) - residuals) / 1e-5
        normal = jacobian.T @ jacobian
        normal += damping * np.diag(np.maximum(np.diag(normal), 1e-9))
        return np.asarray(np.linalg.solve(normal, jacobian.T @ residuals))

    def _residuals(self, point: Floats, scale: float) -> Floats:
        return np.concatenate([scale * self._errors(point), self._penalties(point)])

    def _errors(self, point: Floats) -> Floats:
        return np.asarray(np.log(self.model(point).step_seconds(self._nodes, self._batch) / self._seconds))

    def _penalties(self, point: Floats) -> Floats:
        slope = np.exp(point[3] - point[2]) if self._free[3] else 0.0
        return np.array([_GAMMA_WEIGHT**0.5 * (point[4] - 1), _SLOPE_WEIGHT**0.5 * slope])
