"""The update of a step: averaged gradients, clipping, learning-rate rule, optimizer, scheduler, loss scale."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch.nn import Parameter
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

AUTOCAST = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class Scheduler(Protocol):
    """A learning-rate schedule stepped once a step, as those of torch.optim.lr_scheduler."""

    def step(self) -> object: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any], /) -> object: ...


class Update:
    """Runs on reduced gradients, which are the same on all members, and so does the same on all of them.

    With ``precision="float16"`` the loss is scaled (Micikevicius et al. 2018); a reduced gradient that is not finite skips the update on
    every member, as torch's GradScaler does for one process.
    """

    def __init__(self, optimizer: Optimizer, scheduler: Scheduler | None, clip_norm: float | None, precision: str, device: str) -> None:
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.scaler = torch.amp.GradScaler(device, enabled=precision == "float16")
        self._clip_norm = clip_norm

    def scaled(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss to run backward on."""
        return self.scaler.scale(loss)

    def apply(self, parameters: list[Parameter], factor: float) -> None:
        """One step of everything. ``parameters`` hold the mean gradients of the step; ``factor`` scales this step's learning rates."""
        if parameters:
            self.scaler.unscale_(self.optimizer)
            if self._clip_norm is not None:
                clip_grad_norm_(parameters, self._clip_norm)
            with _scaled_rates(self.optimizer, factor):
                self.scaler.step(self.optimizer)
            self.scaler.update()
        if self.scheduler is not None:
            self.scheduler.step()


@contextmanager
def _scaled_rates(optimizer: Optimizer, factor: float) -> Iterator[None]:
    rates = [group["lr"] for group in optimizer.param_groups]
    if factor != 1.0:
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * factor
    try:
        yield
    finally:
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
