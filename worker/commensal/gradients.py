"""Gradients as views into one flat float32 memory, and the buckets in which they are added up while backward still runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate

import torch
from torch.nn import Parameter

BUCKET_WORDS = 1 << 20

Launch = Callable[[int, int], None]


class GradientError(RuntimeError):
    """A gradient that cannot be added up with the other members'."""


def buckets(counts: list[int], limit: int = BUCKET_WORDS) -> list[range]:
    """Group consecutive parameters of ``counts`` words until ``limit`` words are reached; each parameter is in one group."""
    groups, low, words = [], 0, 0
    for index, count in enumerate(counts):
        words += count
        if words >= limit:
            groups.append(range(low, index + 1))
            low, words = index + 1, 0
    return groups + ([range(low, len(counts))] if low < len(counts) else [])


class Gradients:
    """The gradients of ``parameters``, in reverse order, at the start of ``memory``.

    Parameters hold their views only inside :meth:`attached`; outside it ``.grad`` is ``None``, so ``zero_grad()`` in any form neither drops
    a view nor clears a sum. A parameter used by no shard of a step keeps ``None`` for the update, as in plain torch.
    """

    def __init__(self, parameters: Mapping[str, Parameter], memory: torch.Tensor) -> None:
        self._names = list(parameters)[::-1]
        self._parameters = list(parameters.values())[::-1]
        counts = [parameter.numel() for parameter in self._parameters]
        self._edges = list(accumulate(counts, initial=0))
        pieces = zip(self._parameters, self._edges, self._edges[1:], strict=False)
        self._views = [memory[low:high].view(parameter.shape) for parameter, low, high in pieces]
        self._buckets = buckets(counts)
        self._bucket = [number for number, group in enumerate(self._buckets) for _ in group]
        self._launch: Launch | None = None
        self._next = 0
        self.used: set[int] = set()
        """Numbers of the parameters that got a gradient from this member's shards since :meth:`reset`."""
        for index, parameter in enumerate(self._parameters):
            parameter.register_post_accumulate_grad_hook(self._hook(index))  # type: ignore[no-untyped-call]

    def reset(self) -> None:
        """Forget which parameters were used and which buckets were launched."""
        self._launch, self._next = None, 0
        self._waiting = [set(group) for group in self._buckets]
        self._arrived: set[int] = set()
        self.used.clear()

    def backward(self, loss: torch.Tensor, launch: Launch | None) -> None:
        """Add the gradients of ``loss``. With ``launch``, each bucket is launched as soon as it and all before it are complete.

        Raises GradientError when a gradient arrives twice with ``launch``, or not in its view.
        """
        self._launch = launch
        try:
            with self._attached(range(len(self._parameters))):
                loss.backward()  # type: ignore[no-untyped-call]
        finally:
            self._launch = None

    def flush(self, launch: Launch) -> None:
        """Launch the buckets that still hold an unused parameter."""
        while self._next < len(self._buckets):
            self._send(launch)

    @contextmanager
    def attached(self, used: list[bool]) -> Iterator[list[Parameter]]:
        """Lend the views to the parameters some member has used; these parameters."""
        chosen = [index for index, flag in enumerate(used) if flag]
        with self._attached(chosen):
            yield [self._parameters[index] for index in chosen]

    @contextmanager
    def _attached(self, chosen: list[int] | range) -> Iterator[None]:
        for index in chosen:
            self._parameters[index].grad = self._views[index]
        try:
            yield
            for index in chosen:
                if self._parameters[index].grad is not self._views[index]:
                    raise GradientError(f"the gradient of {self._names[index]!r} was replaced during backward, so it cannot be added up")
        finally:
            for index in chosen:
                self._parameters[index].grad = None

    def _hook(self, index: int) -> Callable[[torch.Tensor], None]:
        bucket = self._bucket[index]

        def fired(_: torch.Tensor) -> None:
            self.used.add(index)
            if self._launch is None:
                return
            self._waiting[bucket].discard(index)
            if index in self._arrived:
                raise GradientError(f"{self._names[index]!r} got a second gradient in one backward (reentrant checkpointing?)")
            self._arrived.add(index)
            while self._next < len(self._buckets) and not self._waiting[self._next]:
                self._send(self._launch)

        return fired

    def _send(self, launch: Launch) -> None:
        group = self._buckets[self._next]
        self._next += 1
        launch(self._edges[group.start], self._edges[group.stop])
