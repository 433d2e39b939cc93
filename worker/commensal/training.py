"""``Training``: the loop of a training script, the same alone and in a ring whose members come and go."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TypeVar

import msgspec
import torch
from torch import nn
from torch.optim import Optimizer

from commensal import deadline
from commensal.arguments import length_of, plan
from commensal.batch import Step, shards, shares
from commensal.data import Batch, Dataset, Indices, Position, fetch, upcoming
from commensal.learning_rate import factor
from commensal.messages import Batches
from commensal.noise import noise_scale
from commensal.randomness import preserved, seed_shard
from commensal.refusals import check_parts
from commensal.replica import TrainingReplica
from commensal.ring import Lost, Place, Ring
from commensal.ring.alone import Alone
from commensal.settling import Settling, StepInfo, evaluating, figures
from commensal.stepping import Stepper
from commensal.update import AUTOCAST, Scheduler, Update

Result = TypeVar("Result")


class LoopError(RuntimeError):
    """The body of the training loop did not call ``step()`` exactly once with the loss of its micro-batch."""


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """One of this member's shards: its number, its samples by index, whether it is this member's last of the step."""

    number: int
    indices: Indices
    last: bool


class Training:
    """Iterating yields micro-batches; :meth:`step` takes the loss of each. A step's update runs inside the last of them.

    ``batch_size`` is the global batch, or (smallest, largest): then the daemon chooses with the nodes, alone it is the smallest, and
    ``lr_rule`` ("linear", "sqrt", "adascale" or None) scales the rate that was tuned for the smallest; ``micro_batch`` the samples of a
    logical shard, which is what determines masks and batch statistics, so it is part of the experiment. Exactly one of ``epochs``,
    ``steps``, ``samples``.
    ``deterministic``: sums over shards that do not depend on who computed which, so any membership trains the same bits (on the same kind
    of processor and number of threads). It costs four to seven times the words on the wire; ``None`` is yes up to 262,144 parameters.
    ``folder`` (or the training's own, in a pilot) exists and will hold checkpoints; without one nothing is saved. ``.grad`` is ``None``
    outside the update, so ``zero_grad()`` is neither needed nor harmful.

    Raises ValueError, TypeError or CrossSampleStateError, naming what cannot be trained, and SaveError for a folder that is missing or
    cannot be written.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        dataset: Dataset,
        *,
        batch_size: int | tuple[int, int],
        micro_batch: int | None = None,
        epochs: int | None = None,
        steps: int | None = None,
        samples: int | None = None,
        scheduler: Scheduler | None = None,
        clip_norm: float | None = None,
        precision: str = "float32",
        lr_rule: str | None = "linear",
        seed: int = 0,
        folder: str | Path | None = None,
        checkpoint_seconds: float = 300.0,
        deterministic: bool | None = None,
    ) -> None:
        self._plan = plan(
            batch_size=batch_size,
            micro_batch=micro_batch,
            epochs=epochs,
            steps=steps,
            samples=samples,
            clip_norm=clip_norm,
            precision=precision,
            lr_rule=lr_rule,
            seed=seed,
            checkpoint_seconds=checkpoint_seconds,
            deterministic=deterministic,
        )
        check_parts(model, optimizer, scheduler)
        position = Position(seed=seed, length=length_of(dataset), batch=self._plan.batch[0])
        home = Path(folder) if folder is not None else _folder(os.environ)
        self._model, self._dataset = model, dataset
        self._device = next(model.parameters()).device.type
        update = Update(optimizer, scheduler, clip_norm, precision, self._device)
        self._replica = TrainingReplica(model, update, position, home)
        self._ring = _ring(home, checkpoint_seconds, Batches(*self._plan.batch, self._plan.micro_batch))
        self._settling = Settling(self._ring)
        exact_shards = self._plan.exact_shards(sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad))
        self._stepper = Stepper(model, update, self._replica, self._ring, self._settling, exact_shards)
        self._body = ExitStack()
        self._shard: Shard | None = None
        self._running = self._lost = self._lead = False

    @property
    def closed(self) -> int:
        """Steps applied to the present parameters."""
        return self._replica.closed

    @property
    def epoch(self) -> int:
        """The epoch of the next step, from 0."""
        return self._replica.position.epoch

    @property
    def lead(self) -> bool:
        """Whether this process was the first of the ring in the last step."""
        return self._lead

    def on_step(self, function: Callable[[StepInfo], object]) -> None:
        """Call ``function`` once for each step that this process closed, when it is settled and the parameters are exactly those after it.

        Only after a loss may they be those of the next step: other members had closed it and gave this one their state. That next step is
        told at the members that closed it.
        """
        self._settling.add(function)

    def evaluate(self, function: Callable[[nn.Module], Result]) -> Result:
        """``function(model)`` in evaluation mode on settled parameters; a dictionary of numbers it returns is also sent to the daemon.

        In a function given to :meth:`on_step`, and after the loop, at once; in the loop's body it first waits until the last step is
        settled. Random states and the modules' modes are given back.
        """
        if self._running and not self._settling.telling:
            self._ring.settle(self._replica)
        buffers = nullcontext() if self._shard is None else self._stepper.statistics.at_start()
        with buffers, evaluating(self._model), self._autocast():
            result = function(self._model)
        values = figures(result)
        if values is not None:
            self._ring.measured(self.closed, values)
        return result

    def step(self, loss: torch.Tensor, *, loss_reduction: str = "mean") -> None:
        """Account for the micro-batch just yielded; in the last one of this member's share the step is closed.

        ``loss`` is a mean over the micro-batch, or a sum with ``loss_reduction="sum"``. Raises LoopError outside the body of the loop.
        """
        shard = self._shard
        if shard is None:
            raise LoopError("step() was called without a micro-batch: once for each, in the body of the loop")
        weight = _weight(loss, loss_reduction, len(shard.indices))
        self._shard = None
        try:
            with self._body, torch.autocast(self._device, enabled=False):
                self._stepper.add(loss, weight, shard.indices, last=shard.last)
            if shard.last:
                self._ring.worked(self._samples, time.monotonic() - self._began)
                self._stepper.close()
        except Lost:
            self._lost = True
            self._stepper.drop()

    def __iter__(self) -> Iterator[Batch]:
        """Micro-batches as torch's default collation makes them, until the goal is reached.

        Leaving the loop early takes this process out of the ring; the others go on without it.
        """
        self._running = True
        try:
            while not self._plan.reached(self._replica.position):
                place = self._ring.begin(self._replica)
                if place is None:
                    self._settling.release(self.closed, self._lead)
                    self._ring.depart()
                    return
                self._settling.take(self.closed, place.rank == 0)
                if not self._plan.reached(self._replica.position):
                    yield from self._attempt(place)
            self._ring.finish(self._replica)
            self._settling.release(self.closed, self._lead)
            deadline.uninstall()
        except GeneratorExit:
            self._ring.abandon()
            raise
        finally:
            self._running = False
            self._body.close()

    def _attempt(self, place: Place) -> Iterator[Batch]:
        step = self._next(place)
        cut = step.cut
        own = shares(len(cut), place.speeds)[place.rank]
        self._shard, self._lost, self._lead = None, False, place.rank == 0
        self._began, self._samples = time.monotonic(), sum(len(cut[number]) for number in own)
        self._stepper.begin(step)
        for number in own:
            indices = step.indices[cut[number].start : cut[number].stop]
            yield self._enter(Shard(number=number, indices=indices, last=number == own[-1]))
            if self._shard is not None:
                raise LoopError(f"the body of the loop did not call step() for shard {number} of step {self.closed + 1}")
            if self._lost:
                return
        if not own:
            self._close_without_work()

    def _next(self, place: Place) -> Step:
        batch = self._plan.batch_of(place.batch)
        scale = factor(self._plan.lr_rule, batch, self._plan.batch[0], noise_scale(self._replica.moments))
        indices = upcoming(self._replica.position, batch)
        return Step(place=place, indices=indices, cut=shards(len(indices), self._plan.micro_batch), batch=batch, factor=scale)

    def _enter(self, shard: Shard) -> Batch:
        """The micro-batch of a shard, in its own random state; both last until step()."""
        self._body.enter_context(preserved())
        seed_shard(self._plan.seed, self.closed + 1, shard.number)
        batch = fetch(self._dataset, shard.indices)
        self._body.enter_context(self._autocast())
        self._shard = shard
        return batch

    def _close_without_work(self) -> None:
        try:
            self._stepper.close()
        except Lost:
            self._stepper.drop()

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self._device, AUTOCAST[self._plan.precision], enabled=self._plan.precision != "float32")


def _folder(environment: Mapping[str, str]) -> Path | None:
    return Path(environment["COMMENSAL_FOLDER"]) if environment.get("COMMENSAL_FOLDER") else None


def _ring(folder: Path | None, checkpoint_seconds: float, batches: Batches) -> Ring:
    if "COMMENSAL_MEMBER" in os.environ:
        from commensal.ring.elastic import connect

        return connect(batches)
    if folder is not None or {"SLURM_JOB_ID", "PBS_JOBID"} & os.environ.keys():
        deadline.install()
    return Alone(folder, checkpoint_seconds)


def _weight(loss: torch.Tensor, reduction: str, samples: int) -> int:
    if reduction not in ("mean", "sum"):
        raise ValueError(f"loss_reduction={reduction!r}: expected 'mean' or 'sum'")
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1 or not loss.requires_grad:
        shape = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else repr(loss)
        raise ValueError(f"the loss is {shape}: expected one number that depends on the model (a mean or a sum over the micro-batch)")
    return samples if reduction == "mean" else 1
