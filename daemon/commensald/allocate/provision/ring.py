"""A synchronous ring on unequal nodes: Pollux's iteration time (Qiao et al., OSDI 2021) where spotDNN has its parameter server.

A step's batch is cut into equal shards, and members get whole shards by speed, so that the slowest is done as early as possible
(commensal/batch.py). Unequal nodes cost rounding only, and membership changes no mathematics: steps to a loss do not depend on the mix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np

from commensald.allocate.provision.pace import Floats, Kind, Mixes, Pace


class Ring(msgspec.Struct, frozen=True, kw_only=True):
    """``batch`` samples a step in shards of ``micro_batch``; seconds of Pollux's model.

    ``alpha_compute`` is the fixed part of a shard; a reduction among K > 1 members takes ``alpha`` + ``beta`` (K - 2), and
    ``gamma`` in [1, 10] says how far it hides behind the last shard: 1 not at all, 10 nearly whole.
    """

    batch: int
    micro_batch: int
    alpha: float
    beta: float = 0.0
    gamma: float = 1.0
    alpha_compute: float = 0.0
    max_members: int | None = None


@dataclass(frozen=True)
class SynchronousRing:
    """T_iter = (k - 1) T_acc + (T_acc^gamma + T_net^gamma)^(1/gamma) of the member that is last, k its shards."""

    kinds: tuple[Kind, ...]
    ring: Ring

    @property
    def shards(self) -> int:
        """Of a step."""
        return -(-self.ring.batch // self.ring.micro_batch)

    @property
    def most(self) -> int | None:
        """More members than shards have nothing to do."""
        return self.shards if self.ring.max_members is None else min(self.shards, self.ring.max_members)

    @property
    def smallest_batch(self) -> float:
        """The batch does not depend on the mix."""
        return float(self.ring.batch)

    @cached_property
    def alone_seconds(self) -> Floats:
        """T_acc = alpha_compute + beta_compute m of one shard on each kind, the slope from what was measured."""
        fixed, shard = self.ring.alpha_compute, self.ring.batch / self.shards
        return np.array([fixed + (kind.seconds - fixed) * shard / kind.batch for kind in self.kinds])

    @cached_property
    def fastest(self) -> float:
        """Samples a second of the fastest kind."""
        return self.ring.batch / self.shards / float(self.alone_seconds.min())

    def pace(self, mixes: Mixes) -> Pace:
        """A step of each mix; R is 0, as of one worker."""
        members = mixes.sum(axis=1).astype(float)
        network = np.where(members > 1, self.ring.alpha + self.ring.beta * np.maximum(members - 2, 0), 0.0)
        gamma, shard = self.ring.gamma, self.alone_seconds[None, :]
        tail = (shard**gamma + network[:, None] ** gamma) ** (1 / gamma)
        counts = np.floor(self._done(mixes)[:, None] / shard + 1e-9)
        seconds = np.where(mixes > 0, (counts - 1) * shard + tail, 0.0).max(axis=1)
        return Pace(seconds, np.full(members.size, float(self.ring.batch)), members, np.zeros(members.size))

    def _done(self, mixes: Mixes) -> Floats:
        """When each mix can have all shards computed: the least t with sum over members of floor(t / T_acc) >= shards, by bisection.

        If shards could be divided it would be ``divided``; whole ones take no more than the slowest member's shard longer.
        """
        with np.errstate(divide="ignore"):
            divided = self.shards / (mixes / self.alone_seconds).sum(axis=1)
        times = np.unique(np.arange(1, self.shards + 1)[:, None] * self.alone_seconds)
        bounds = divided * (1 - 1e-9), divided * (1 + 1e-9) + self.alone_seconds.max()
        low, high = (np.minimum(np.searchsorted(times, each), times.size - 1) for each in bounds)
        while (low < high).any():
            middle = (low + high) // 2
            enough = (mixes * np.floor(times[middle][:, None] / self.alone_seconds + 1e-9)).sum(axis=1) >= self.shards
            low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
        return np.asarray(times[low])
