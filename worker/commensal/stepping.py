"""One step on one member: sums of its shards, the reduction, and the update that follows from it on all members alike."""

from __future__ import annotations

import math

import torch
from torch import nn

from commensal import words
from commensal.batch import Step
from commensal.checkpoint import snapshot
from commensal.data import Indices, advance
from commensal.gradients import GradientError, Gradients
from commensal.noise import estimate, noise_scale, smoothed
from commensal.normalisation import RunningStatistics, running
from commensal.refusals import Watch
from commensal.replica import TrainingReplica
from commensal.ring import Ring
from commensal.settling import Settling
from commensal.update import Update


class Stepper:
    """Holds the sums of the step in flight; :meth:`close` turns them into the next state."""

    def __init__(
        self, model: nn.Module, update: Update, replica: TrainingReplica, ring: Ring, settling: Settling, exact_shards: int | None
    ) -> None:
        trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
        self._model = model
        self._trained = frozenset(trained)
        sizes = words.Sizes(
            gradients=sum(parameter.numel() for parameter in trained.values()),
            statistics=sum(buffer.numel() for buffer in running(model).values()),
            parameters=len(trained),
        )
        device = next(iter(trained.values())).device
        self._words = words.lay_out(ring, sizes, device, exact_shards)
        self._gradients = Gradients(trained, self._words.gradients)
        self.statistics = RunningStatistics(model, self._words.statistics)
        self._watch = Watch(model)
        self._update, self._replica, self._ring, self._settling = update, replica, ring, settling

    def begin(self, step: Step) -> None:
        """Start from nothing."""
        self._step = step
        self._gradients.reset()
        self.statistics.remember()
        self._watch.begin()
        self._words.clear()

    def add(self, loss: torch.Tensor, weight: int, indices: Indices, *, last: bool) -> None:
        """Add a shard: ``loss`` times ``weight`` is a sum over its samples. With ``last`` the reduction starts during backward."""
        self._watch.check()
        self._words.loss += loss.detach() * weight
        count = torch.tensor(words.checksum(indices), device=self._words.control.device)
        self._words.control[words.SAMPLES : words.LOSS] += count
        self._words.control[words.SUM : words.LOSS].remainder_(words.PRIME)
        self._gradients.backward(self._update.scaled(loss * weight), self._words.reduce if last else None)
        self.statistics.add(len(indices))
        self._words.add_shard(len(indices))

    def close(self) -> None:
        """Reduce what is left, then apply.

        Raises, before anything is applied, Lost; StreamError when members disagree on the samples; GradientError when a parameter was
        frozen or thawed since construction.
        """
        self._check_frozen()
        self._gradients.flush(self._words.reduce)
        control = self._words.control
        control[: words.SAMPLES] = torch.tensor(self._ring.words(), device=control.device)
        if self._gradients.used:
            self._words.used[sorted(self._gradients.used)] = 1.0
        self._words.reduce_tail()
        self._words.wait()
        sums = control.tolist()
        words.check(sums, self._step.indices, self._replica.closed + 1)
        # The researcher's functions may take long: the ring may be halted meanwhile, and then this step is not closed.
        self._settling.release(self._replica.closed, self._step.place.rank == 0)
        self._ring.claim()
        self._apply(sums)

    def drop(self) -> None:
        """The step in flight is lost: nothing of it was applied, and :meth:`begin` clears its sums."""
        self.statistics.restore()

    def _note_noise(self, step: Step) -> None:
        """Mean gradients are in place, not clipped yet."""
        if self._words.squares is None:
            return
        seen = estimate([len(shard) for shard in step.cut], float(self._words.squares), float(self._words.gradients.square().sum()))
        if seen is not None and math.isfinite(seen.square + seen.variance):
            self._replica.moments = smoothed(self._replica.moments, seen)

    def _check_frozen(self) -> None:
        changed = {name for name, parameter in self._model.named_parameters() if parameter.requires_grad} ^ self._trained
        if changed:
            raise GradientError(f"requires_grad of {', '.join(sorted(changed))} changed after Training(...) was made")

    def _apply(self, sums: list[float]) -> None:
        step, before = self._step, self._replica.position
        samples = len(step.indices)
        self._words.gradients.div_(samples)
        self._note_noise(step)
        self.statistics.apply(samples)
        with self._gradients.attached((self._words.used > 0).tolist()) as parameters:
            self._update.apply(parameters, step.factor)
        self._replica.position = advance(before, samples, step.batch)
        self._settling.hold(before, step, float(self._words.loss) / samples, noise_scale(self._replica.moments))
        hold, stop, save = sums[words.HOLD], sums[words.STOP], sums[words.SAVE]
        if self._ring.closed(self._replica, hold, stop, save):
            self._ring.save(snapshot(self._replica))
