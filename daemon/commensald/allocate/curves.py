"""Throughput curves: samples per second of a training by its number of nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from commensald.allocate.fitting import fit, medians
from commensald.allocate.observations import Observation

Curve = tuple[tuple[int, float], ...]
"""(nodes, samples per second), ascending by nodes."""

LOSS_PER_DOUBLING = 0.02
"""Of the throughput, where nothing is known: 64 nodes give 0.89 of linear, as VGG-16 and DenseNet do on Summit (research/papers.md 1.6)."""


def rates(curve: Curve, most: int) -> NDArray[np.float64]:
    """Samples per second for 0..``most`` nodes: linear between points, nothing at 0, flat beyond the last point."""
    points = [(0, 0.0), *(point for point in curve if point[0] > 0)]
    nodes, values = zip(*points, strict=True)
    return np.asarray(np.interp(np.arange(most + 1), nodes, values))


def default(most: int, one_node: float = 1.0) -> Curve:
    """Nearly linear, losing LOSS_PER_DOUBLING with each doubling; used until something is given or measured."""
    return tuple((nodes, one_node * nodes * (1.0 - LOSS_PER_DOUBLING) ** float(np.log2(nodes))) for nodes in range(1, most + 1))


def learn(observed: Iterable[Observation], most: int, micro_batch: int | None = None) -> Curve:
    """The curve behind steps that were seen, 1..``most`` nodes at least, at the largest batch seen (smaller ones are ends of epochs).

    At node counts seen it is the median. Elsewhere it has the shape of Pollux's model, if there is enough to fit one, else the default's,
    moved to meet the medians beside it.
    """
    steps = tuple(observed)
    seconds = medians(steps)
    if not seconds:
        return default(most)
    batch = max(size for _, size in seconds)
    known = {nodes: size / taken for (nodes, size), taken in seconds.items()}  # ascending: the largest batch at each count stays
    sizes = range(1, max(most, *known) + 1)
    shape = dict(default(sizes[-1]))
    if _enough(seconds):
        shape = dict(zip(sizes, fit(steps, micro_batch).rate(np.array(sizes), batch).tolist(), strict=True))
    return _through(known, shape)


def meet(curve: Curve, observed: Iterable[Observation]) -> Curve:
    """``curve`` as a shape, moved to meet what was seen: what to expect where it was given and not measured."""
    seconds = medians(observed)
    known = {nodes: size / taken for (nodes, size), taken in seconds.items()}
    most = max((nodes for nodes, _ in curve), default=1)
    return _through(known, dict(enumerate(rates(curve, max(most, *known))[1:].tolist(), start=1))) if known else curve


def _enough(seconds: Collection[tuple[int, int]]) -> bool:
    """Whether a model can be told apart: three node counts, or two at two batches or more."""
    counts = {nodes for nodes, _ in seconds}
    return len(counts) >= 3 or (len(counts) == 2 and len(seconds) >= 4)


def _through(known: Mapping[int, float], shape: Mapping[int, float]) -> Curve:
    """``shape``, times a factor that makes it meet ``known``: log-linear in log(nodes) between known counts, constant outside."""
    sizes, at = np.array(list(shape)), np.array(list(known))
    offsets = np.log([rate / shape[nodes] for nodes, rate in known.items()])
    rates = np.array(list(shape.values())) * np.exp(np.interp(np.log(sizes), np.log(at), offsets))
    return tuple((nodes, known.get(nodes, rate)) for nodes, rate in zip(sizes.tolist(), rates.tolist(), strict=True))
