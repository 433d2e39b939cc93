"""What cannot be trained by many as by one is refused by name, before the first step or in the first ones."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.utils.parametrizations import _SpectralNorm
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.optim import Optimizer

from commensal.normalisation import running
from commensal.update import Scheduler

WATCHED_STEPS = 3


class CrossSampleStateError(ValueError):
    """A model keeps state across samples that is not a running statistic of a normalisation layer."""


def check_parts(model: nn.Module, optimizer: Optimizer, scheduler: Scheduler | None) -> None:
    """Raises CrossSampleStateError or ValueError naming what cannot be trained by many as by one."""
    check_model(model)
    check_optimizer(optimizer, model)
    check_scheduler(scheduler, optimizer)


def check_model(model: nn.Module) -> None:
    """Raises CrossSampleStateError, or ValueError for parameters and buffers that do not fit the flat memory; each names the culprit."""
    for name, module in model.named_modules():
        _check_module(name or type(model).__name__, module)
    trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    if not trained:
        raise ValueError("the model has no parameter that requires a gradient")
    for name, tensor in trained.items():
        if tensor.dtype != torch.float32 or tensor.layout != torch.strided:
            raise ValueError(f"parameter {name!r} is {tensor.dtype}: only float32 is trained (see precision= for 16-bit arithmetic)")
    for name, buffer in running(model).items():
        if buffer.is_floating_point() and buffer.dtype != torch.float32:
            raise ValueError(f"buffer {name!r} is {buffer.dtype}: running statistics must be float32")
    devices = {str(parameter.device) for parameter in model.parameters()}
    if len(devices) > 1:
        raise ValueError(f"the model's parameters are on several devices: {', '.join(sorted(devices))}")


def check_optimizer(optimizer: Optimizer, model: nn.Module) -> None:
    """Raises ValueError for an optimizer whose update does not follow from the model's gradients alone."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("LBFGS evaluates the loss inside its step: it cannot be used here")
    known = {id(parameter) for parameter in model.parameters()}
    for number, group in enumerate(optimizer.param_groups):
        for index, parameter in enumerate(group["params"]):
            if id(parameter) not in known:
                raise ValueError(
                    f"parameter {index} of optimizer group {number} (shape {tuple(parameter.shape)}) is not one of the model's"
                )


def check_scheduler(scheduler: Scheduler | None, optimizer: Optimizer) -> None:
    """Raises ValueError for a scheduler that steps on something else than closed steps, or drives another optimizer."""
    if scheduler is None:
        return
    kind = type(scheduler).__name__
    if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
        raise ValueError("scheduler is a ReduceLROnPlateau, which needs a metric: here a scheduler is stepped once a step, without one")
    if getattr(scheduler, "optimizer", optimizer) is not optimizer:
        raise ValueError(f"scheduler ({kind}) drives another optimizer than the one given")


def _check_module(name: str, module: nn.Module) -> None:
    kind = type(module).__name__
    if isinstance(module, nn.SyncBatchNorm):
        raise CrossSampleStateError(f"{name!r} is a SyncBatchNorm: use BatchNorm, whose statistics are taken per micro-batch and averaged")
    if isinstance(module, LazyModuleMixin) and module.has_uninitialized_params():
        raise CrossSampleStateError(f"{name!r} is a {kind} without shape yet: run one forward before Training(...)")
    hooks: list[object] = list(module._forward_pre_hooks.values())
    if isinstance(module, _SpectralNorm) or any(isinstance(hook, SpectralNorm) for hook in hooks):
        raise CrossSampleStateError(f"{name!r} uses spectral_norm, whose power iteration keeps state across batches")


class Watch:
    """Finds, in the first steps of a process, a forward that changes a buffer other than running statistics."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._left = WATCHED_STEPS
        self._start: dict[str, torch.Tensor] = {}

    def begin(self) -> None:
        """A step begins: remember its start values."""
        if self._left:
            self._start = {name: buffer.clone() for name, buffer in self._others().items()}
        self._left = max(self._left - 1, -1)

    def check(self) -> None:
        """A shard has run. Raises CrossSampleStateError naming the buffer it changed."""
        if self._left < 0:
            return
        for name, buffer in self._others().items():
            if name not in self._start or not _same(buffer, self._start[name]):
                raise CrossSampleStateError(f"buffer {name!r} changes in a forward: it would depend on which member ran which samples")

    def _others(self) -> dict[str, torch.Tensor]:
        averaged = running(self._model)
        return {name: buffer for name, buffer in self._model.named_buffers() if name not in averaged}


def _same(left: torch.Tensor, right: torch.Tensor) -> bool:
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    both_nan = (left != left) & (right != right)
    return bool(((left == right) | both_nan).all())
