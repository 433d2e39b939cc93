"""How long a step takes, by the number of nodes and the batch: Pollux's model, and the tables that MASCOTS'20 profiles instead.

A rate is batch / seconds, in samples per second. Arrays broadcast: nodes of shape [k, 1] and batches of shape [k, c] give [k, c].
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


class StepTimes(msgspec.Struct, frozen=True, kw_only=True):
    """What either model offers; ``nodes`` (1 or more, of equal speed) and ``batch`` are whole numbers."""

    def step_seconds(self, nodes: ArrayLike, batch: ArrayLike) -> Floats:
        """Seconds of one step of ``batch`` samples."""
        raise NotImplementedError

    def rate(self, nodes: ArrayLike, batch: ArrayLike) -> Floats:
        """Samples per second."""
        return np.asarray(np.asarray(batch, np.float64) / self.step_seconds(nodes, batch))


class Throughput(StepTimes, frozen=True, kw_only=True, tag=True):
    """Pollux's iteration time (research/papers.md 4.1) with one member a node; all in seconds, but for ``gamma`` in [1, 10].

    A member computes its shards one after another, each in ``alpha_c + beta_c * samples``; only the last can overlap the allreduce, which
    takes ``alpha_n + beta_n * (nodes - 2)``: fully at ``gamma`` = 10, not at all at 1. Shards are as commensal/batch.py cuts them;
    ``micro_batch`` ``None``: one shard a member.
    """

    alpha_c: float
    beta_c: float
    alpha_n: float = 0.0
    beta_n: float = 0.0
    gamma: float = 1.0
    micro_batch: int | None = None

    def step_seconds(self, nodes: ArrayLike, batch: ArrayLike) -> Floats:
        """Seconds of one step of ``batch`` samples."""
        members, samples = np.asarray(nodes, np.float64), np.asarray(batch, np.float64)
        shards = members if self.micro_batch is None else np.ceil(samples / self.micro_batch)
        shard = self.alpha_c + self.beta_c * samples / shards
        reduction = np.where(members > 1, self.alpha_n + self.beta_n * np.maximum(members - 2, 0), 0.0)
        last = (shard**self.gamma + reduction**self.gamma) ** (1 / self.gamma)
        return np.asarray((np.ceil(shards / members) - 1) * shard + last)


class Profile(StepTimes, frozen=True, kw_only=True, tag=True):
    """What MASCOTS'20's scalability analyser measures (research/papers.md 3.2): linear between the points of each table, flat outside.

    ``processing``: (samples a device, seconds); ``communication``: (nodes, seconds); both ascending. More samples than ``at_once`` a device
    takes in equal rounds (``None``: however many at once).
    """

    processing: tuple[tuple[float, float], ...]
    communication: tuple[tuple[int, float], ...] = ((1, 0.0),)
    at_once: int | None = None

    def step_seconds(self, nodes: ArrayLike, batch: ArrayLike) -> Floats:
        """Seconds of one step of ``batch`` samples: computing, then communicating."""
        devices, samples = np.asarray(nodes, np.float64), np.asarray(batch, np.float64)
        rounds = np.ones(()) if self.at_once is None else np.ceil(samples / devices / self.at_once)
        return rounds * _read(self.processing, samples / devices / rounds) + _read(self.communication, devices)


def _read(table: Sequence[tuple[float, float]], at: Floats) -> Floats:
    keys, values = np.array(table, np.float64).T
    return np.asarray(np.interp(at, keys, values))
