"""An elastic batch: which size trains fastest on so many nodes, by samples alone or, as in Pollux, by progress."""

from __future__ import annotations

from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from commensald.allocate.throughput import Floats, Profile, Throughput

Ints = NDArray[np.int64]

_GRID = 50
"""Geometric points between the smallest and the largest batch, as in Pollux (research/papers.md 4.1)."""


class ElasticBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Batches from ``least`` to ``most`` samples, of which one node can hold ``per_device`` (``None``: any number, in micro-batches).

    ``initial`` is the batch that the learning rate was tuned for (``None``: ``least``). With ``noise_scale``, in samples, a batch is judged
    by progress instead of by samples.
    """

    least: int
    most: int
    times: Throughput | Profile
    per_device: int | None = None
    initial: int | None = None
    noise_scale: float | None = None

    @property
    def reference(self) -> int:
        """The initial batch."""
        return self.least if self.initial is None else self.initial

    @property
    def fewest_nodes(self) -> int:
        """On fewer, not even the smallest batch fits."""
        return 1 if self.per_device is None else -(-self.least // self.per_device)

    def progress(self, nodes: Ints, batch: Ints) -> Floats:
        """Samples per second, each counted by what it is worth; arrays broadcast."""
        rate = self.times.rate(nodes, batch)
        return rate if self.noise_scale is None else rate * efficiency(batch, self.reference, self.noise_scale)


def efficiency(batch: Ints, initial: int, noise_scale: float) -> Floats:
    """What a sample of a step of ``batch`` adds, against one of a step of ``initial``: (phi + M0) / (phi + M) (Pollux, equation 7)."""
    return np.asarray((noise_scale + initial) / (noise_scale + batch))


@lru_cache(maxsize=1024)
def fastest(elastic: ElasticBatch, most_nodes: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """For 1..``most_nodes`` nodes the batch of most progress per second, and that progress; 0 and 0.0 where no batch fits.

    Of batches as good as each other, the smallest.
    """
    nodes = np.arange(1, most_nodes + 1)[:, None]
    sizes = _candidates(elastic, nodes)
    progress = elastic.progress(nodes, sizes)
    best = progress.argmax(axis=1)[:, None]
    fits = nodes[:, 0] >= elastic.fewest_nodes
    batches = np.where(fits, np.take_along_axis(sizes, best, axis=1)[:, 0], 0)
    rates = np.where(fits, np.take_along_axis(progress, best, axis=1)[:, 0], 0.0)
    return tuple(batches.tolist()), tuple(rates.tolist())


def _candidates(elastic: ElasticBatch, nodes: Ints) -> Ints:
    """Batches worth trying on each of ``nodes`` [k, 1], ascending along [k, c]: a grid, the ends, and where the step time has a kink."""
    grid = np.unique(np.geomspace(elastic.least, elastic.most, _GRID).round().astype(np.int64))
    limit = np.full_like(nodes, elastic.most) if elastic.per_device is None else np.minimum(elastic.per_device * nodes, elastic.most)
    kinks = [np.broadcast_to(grid, (len(nodes), len(grid))), limit]
    if isinstance(elastic.times, Profile):
        kinks.append(nodes * np.array([round(samples) for samples, _ in elastic.times.processing]))
    elif elastic.times.micro_batch is not None:
        round_of_shards = nodes * elastic.times.micro_batch
        kinks.append(grid // round_of_shards * round_of_shards)
    return np.sort(np.clip(np.concatenate(kinks, axis=1), elastic.least, np.maximum(limit, elastic.least)), axis=1)
