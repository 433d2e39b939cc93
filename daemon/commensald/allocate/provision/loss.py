"""spotDNN's loss model, equation (3): the loss after so many steps, for the batch and the staleness of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from commensald.allocate.provision.pace import Floats, Pace

Form = Literal["convergence", "sqrt", "synchronous"]
"""How a cluster stretches the way to a loss: by sqrt((R + g4) |N|) as in the paper, by sqrt(|N|) as in its authors' code, or, where
members step together, not at all."""
Number = float | Floats


@dataclass(frozen=True)
class Progress:
    """Where a training stands."""

    step: float
    loss: float


def stretch(form: Form, g4: Number, members: Number, spread: Number) -> Number:
    """How much further a cluster of ``members`` with convergence coefficient ``spread`` R has to go."""
    if form == "synchronous":
        return 1.0
    return np.sqrt((spread + g4) * members) if form == "convergence" else np.sqrt(members)


@dataclass(frozen=True)
class Loss:
    """(3) f_loss(b_w, R, |N|, j) = (g2 b_w + g3) sqrt((R + g4) |N|) / (j + g1) + g5, in general with g2 < 0.

    The coefficients may be arrays that broadcast against mixes.
    """

    g1: Number
    g2: Number
    g3: Number
    g5: Number
    g4: Number = 0.0
    form: Form = "convergence"

    @property
    def least_stretch(self) -> Number:
        """Of one worker alone, for which R = 0: no cluster's is less."""
        return stretch(self.form, self.g4, 1.0, 0.0)

    def value(self, pace: Pace, step: Number) -> Number:
        """The loss after ``step`` steps."""
        return self._amplitude(pace) / (step + self.g1) + self.g5

    def steps(self, goal: float, pace: Pace, done: Progress | None = None) -> Floats:
        """Steps until the loss is ``goal``, from ``done`` on; infinite where the loss never gets there."""
        return self._steps(goal, self._amplitude(pace), done)

    def fewest_steps(self, goal: float, batch: float, done: Progress | None = None) -> Floats:
        """The same for one worker of that batch: what (16) begins with."""
        return self._steps(goal, self._height(batch) * self.least_stretch, done)

    def _amplitude(self, pace: Pace) -> Number:
        return self._height(pace.batch) * stretch(self.form, self.g4, pace.members, pace.spread)

    def _height(self, batch: Number) -> Number:
        """Infinite for a batch so large that the line says less than nothing: the model does not reach so far."""
        line = self.g2 * batch + self.g3
        return np.where(line > 0, line, np.inf)

    def _steps(self, goal: float, amplitude: Number, done: Progress | None) -> Floats:
        """(3) solved for j. Another cluster than before goes on at its own j of the loss reached, not at the old one's step count;
        a synchronous ring has one count for all clusters.
        """
        begin: Number = 0.0 if done is None else done.step
        with np.errstate(divide="ignore", invalid="ignore"):
            if done is not None and self.form != "synchronous":
                begin = np.where(done.loss > self.g5, amplitude / (done.loss - self.g5) - self.g1, 0.0)
            end = np.where(goal > self.g5, amplitude / (goal - self.g5) - self.g1, np.inf)
            return np.where(np.isfinite(end), np.maximum(end - begin, 0.0), np.inf)
