"""Throughput curves: samples per second of a training by its number of nodes."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

import numpy as np
from numpy.typing import NDArray

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


def learn(observed: Iterable[tuple[int, float]], most: int) -> Curve:
    """The curve behind observations (nodes, samples per second) of single steps: the median at each node count that was seen.

    Beyond the counts seen, and below them, the default's shape goes on from the nearest one, so that growing is tried.
    """
    seen: dict[int, list[float]] = {}
    for nodes, rate in observed:
        seen.setdefault(nodes, []).append(rate)
    known = {nodes: float(median(values)) for nodes, values in seen.items()}
    return _complete(known, most) if known else default(most)


def _complete(known: dict[int, float], most: int) -> Curve:
    low, high = min(known), max(known)
    shape = dict(default(max(most, high)))
    below = {nodes: known[low] * shape[nodes] / shape[low] for nodes in range(1, low)}
    beyond = {nodes: known[high] * shape[nodes] / shape[high] for nodes in range(high + 1, most + 1)}
    return tuple(sorted((below | known | beyond).items()))
