"""Running statistics of BatchNorm and InstanceNorm: taken per shard, averaged over the shards of a step, weighted by samples."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

NAMES = ("running_mean", "running_var", "num_batches_tracked")


def running(model: nn.Module) -> dict[str, torch.Tensor]:
    """The running statistics of a model by buffer name."""
    found = {}
    for prefix, module in model.named_modules():
        if isinstance(module, _NormBase):
            buffers = module.named_buffers(recurse=False)
            found.update({f"{prefix}.{name}".lstrip("."): buffer for name, buffer in buffers if name in NAMES})
    return found


class RunningStatistics:
    """Sums of each shard's change of the running statistics, times its samples, in ``memory``.

    The buffers stand at the step's start values except inside a shard. ``num_batches_tracked`` grows by the mean over the shards too: a
    step is one batch. It is an integer and stays exact.
    """

    def __init__(self, model: nn.Module, memory: torch.Tensor) -> None:
        named = running(model)
        self._buffers = list(named.values())
        self._places = [(model.get_submodule(path), name) for path, _, name in (key.rpartition(".") for key in named)]
        edges = [0]
        for buffer in self._buffers:
            edges.append(edges[-1] + buffer.numel())
        self._sums = [memory[low:high].view(b.shape) for b, low, high in zip(self._buffers, edges, edges[1:], strict=False)]
        self.remember()

    def remember(self) -> None:
        """Take the present values as the step's start values."""
        self._start = [buffer.clone() for buffer in self._buffers]

    @torch.no_grad()
    def add(self, samples: int) -> None:
        """Account for a shard that has just run, and go back to the start values."""
        for buffer, start, total in zip(self._buffers, self._start, self._sums, strict=True):
            total.add_(buffer - start, alpha=samples)
            buffer.copy_(start)

    @torch.no_grad()
    def restore(self) -> None:
        """Go back to the start values."""
        for buffer, start in zip(self._buffers, self._start, strict=True):
            buffer.copy_(start)

    @torch.no_grad()
    def apply(self, samples: int) -> None:
        """Become the average over the step's ``samples``."""
        for buffer, total in zip(self._buffers, self._sums, strict=True):
            change = total / samples
            buffer.add_(change if buffer.is_floating_point() else change.round().to(buffer.dtype))

    @contextmanager
    def at_start(self) -> Iterator[None]:
        """The start values for a while. Buffers are exchanged, not written: the graph of a shard in progress needs them as they are."""
        for (module, name), start in zip(self._places, self._start, strict=True):
            module._buffers[name] = start.clone()
        try:
            yield
        finally:
            for (module, name), buffer in zip(self._places, self._buffers, strict=True):
                module._buffers[name] = buffer
