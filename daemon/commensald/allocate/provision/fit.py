"""The loss model's coefficients from losses that were observed, and how far to trust them.

Equation (3) is linear in (g2, g3, g5) once (g1, g4) are known. Variable projection (Golub and Pereyra 1973) therefore searches two numbers,
in logarithms so that they stay positive, by Levenberg-Marquardt from the best point of a coarse grid, and solves for the others exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from commensald.allocate.provision.loss import Form, Loss, stretch
from commensald.allocate.provision.pace import Floats, Pace

REPLICATES = 200
"""Refits behind a band: its 5 % and 95 % points then rest on ten refits each."""
_GRID_G1, _GRID_G4 = np.geomspace(1e-3, 10.0, 13), np.geomspace(1e-3, 30.0, 7)
_ROUNDS, _NUDGE, _SAME_BATCH = 25, 1e-4, 1e-6


class TooFew(ValueError):
    """Observations that no curve follows from."""


@dataclass(frozen=True)
class Observed:
    """Losses, each with its step and the cluster that it was seen on; arrays of one length. ``pace.step_seconds`` is not looked at."""

    step: Floats
    loss: Floats
    pace: Pace

    @classmethod
    def of_ring(cls, step: Sequence[float], loss: Sequence[float], batch: Sequence[float]) -> Observed:
        """Where members step together, only the batch of a step matters."""
        nothing = np.zeros(len(step))
        return cls(np.array(step), np.array(loss), Pace(nothing, np.array(batch), nothing + 1, nothing))


@dataclass(frozen=True)
class Fit:
    """A loss model, its ``band`` (the same with a row of coefficients a refit), and the standard error of one observation.

    Where all was observed at one batch g2 is 0: then nothing is known of another batch.
    """

    loss: Loss
    band: Loss
    standard_error: float


def fit(observed: Observed, form: Form = "convergence", replicates: int = REPLICATES, seed: int = 0) -> Fit:
    """Least squares, and a band by the bootstrap of residuals in blocks (Künsch 1989), as losses near in time err together.

    Raises TooFew where there are fewer observations than twice the coefficients, or only those of one cluster and g4 is looked for.
    """
    problem = _Problem(observed, form)
    if form == "convergence" and not (np.ptp(observed.pace.members) or np.ptp(observed.pace.spread)):
        raise TooFew("the losses of one cluster do not tell g4: give those of two, or form = 'sqrt'")
    if observed.loss.size < (least := 2 * problem.unknowns):
        raise TooFew(f"{observed.loss.size} losses are too few for {problem.unknowns} coefficients: at least {least} are needed")
    theta = problem.search(observed.loss, problem.coarse(observed.loss))
    curve, residual = problem.solve(theta, observed.loss)
    freedom = residual.size / (residual.size - problem.unknowns)
    fitted, spare = observed.loss - residual, (residual - residual.mean()) * np.sqrt(freedom)
    chance = np.random.default_rng(seed)
    again = (fitted + _blocks(spare, chance) for _ in range(replicates))
    rows = np.array([problem.solve(problem.search(losses, theta), losses)[0] for losses in again])
    return Fit(problem.model(curve), problem.model(rows), float(np.sqrt(np.mean(residual**2) * freedom)))


def _blocks(residual: Floats, chance: np.random.Generator) -> Floats:
    """As many residuals, drawn in runs of n^(1/3) that may go on from the end to the beginning."""
    length = max(round(residual.size ** (1 / 3)), 1)
    starts = chance.integers(residual.size, size=-(-residual.size // length))
    drawn = (starts[:, None] + np.arange(length)).ravel()[: residual.size]
    return np.asarray(residual[drawn % residual.size])


class _Problem:
    """One set of observations; ``theta`` is (log g1, log g4), or (log g1) where the form has no g4."""

    def __init__(self, observed: Observed, form: Form) -> None:
        self._steps, self._pace, self._form = observed.step, observed.pace, form
        batch = observed.pace.batch
        self._batch_scale = float(batch.max())
        self._one_batch = bool(np.ptp(batch) <= _SAME_BATCH * self._batch_scale)
        self._horizon = max(float(observed.step.max()), 1.0)
        far = np.log(self._horizon)
        self._low, self._high = np.array([far - 9.0, -9.0]), np.array([far + 4.0, 6.0])

    @property
    def _nonlinear(self) -> int:
        return 2 if self._form == "convergence" else 1

    @property
    def _linear(self) -> int:
        return 2 if self._one_batch else 3

    @property
    def unknowns(self) -> int:
        """Coefficients that are looked for."""
        return self._nonlinear + self._linear

    def model(self, curve: Floats) -> Loss:
        """The five numbers as a loss model; a row a refit makes a band, whose answers have a row a refit too."""
        g1, g2, g3, g4, g5 = (each[:, None] for each in curve.T) if curve.ndim > 1 else map(float, curve)
        return Loss(g1=g1, g2=g2, g3=g3, g4=g4, g5=g5, form=self._form)

    def coarse(self, losses: Floats) -> Floats:
        """The best point of a grid."""
        fourth = _GRID_G4 if self._nonlinear == 2 else np.ones(1)
        points = [np.log([first * self._horizon, each])[: self._nonlinear] for first in _GRID_G1 for each in fourth]
        return min(points, key=lambda theta: float(np.sum(self.solve(theta, losses)[1] ** 2)))

    def search(self, losses: Floats, theta: Floats) -> Floats:
        """Levenberg and Marquardt's way down from ``theta``."""
        damping, residual = 1e-2, self.solve(theta, losses)[1]
        for _ in range(_ROUNDS):
            moved = self._downhill(theta, losses, residual, damping)
            tried = self.solve(moved, losses)[1]
            before, after = float(residual @ residual), float(tried @ tried)
            if after < before:
                theta, residual, damping = moved, tried, damping / 10.0
            else:
                damping *= 10.0
            if abs(before - after) <= 1e-9 * before:
                break
        return theta

    def _downhill(self, theta: Floats, losses: Floats, residual: Floats, damping: float) -> Floats:
        nudged = [self.solve(theta + _NUDGE * unit, losses)[1] for unit in np.eye(theta.size)]
        slopes = np.stack([(each - residual) / _NUDGE for each in nudged], axis=1)
        normal = slopes.T @ slopes
        way = np.linalg.solve(normal + damping * np.diag(np.diag(normal) + 1e-12), -slopes.T @ residual)
        return np.asarray(np.clip(theta + np.clip(way, -2.0, 2.0), self._low[: theta.size], self._high[: theta.size]))

    def solve(self, theta: Floats, losses: Floats) -> tuple[Floats, Floats]:
        """(g1, g2, g3, g4, g5) of least squares for this ``theta``, with a floor g5 >= 0, and the residuals."""
        g1, g4 = float(np.exp(theta[0])), float(np.exp(theta[1])) if self._nonlinear == 2 else 0.0
        reach = stretch(self._form, g4, self._pace.members, self._pace.spread) * self._horizon / (self._steps + g1)
        columns = np.stack([reach, np.ones_like(reach), reach * self._pace.batch / self._batch_scale], axis=1)[:, : self._linear]
        found = _least_squares(columns, losses)
        g2 = 0.0 if self._one_batch else found[2] * self._horizon / self._batch_scale
        return np.array([g1, g2, found[0] * self._horizon, g4, found[1]]), losses - columns @ found


def _least_squares(columns: Floats, losses: Floats) -> Floats:
    """With the second column's coefficient, the floor, not below 0."""
    found = np.linalg.lstsq(columns, losses, rcond=None)[0]
    if found[1] >= 0:
        return np.asarray(found)
    return np.insert(np.linalg.lstsq(np.delete(columns, 1, axis=1), losses, rcond=None)[0], 1, 0.0)
