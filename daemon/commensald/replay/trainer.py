"""A trainer at work in a replay, and what changes of its size cost it (research/papers.md 1.4).

Who loses nodes is charged ``shrink_stall`` seconds at the rate it had, once, however many it lost. Whoever is given another size is
charged ``grow_stall`` or ``shrink_stall`` seconds at the rate it had before, and ``warmup`` seconds of the new nodes' share of the new
rate. One that starts from nothing has no rate before: its start is free, or charged at the new rate. Charges are paid from the work that
follows, so no work is ever undone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from commensald.decision import Demand
from commensald.replay.workload import Kind
from commensald.replay.world import OWNER

DONE = 1e-9
"""Of a trainer's samples: so little left is none."""


@dataclass
class Trainer:
    """``done`` and ``owed`` are samples, ``rate`` samples per second."""

    name: str
    kind: Kind
    nodes: frozenset[str] = frozenset()
    done: float = 0.0
    owed: float = 0.0
    rate: float = 0.0

    @property
    def finished(self) -> bool:
        """Whether all its samples are trained."""
        return self.done >= self.kind.samples * (1 - DONE)

    @property
    def seconds_left(self) -> float:
        """Until it is finished, at its present size."""
        return (self.kind.samples - self.done + self.owed) / self.rate if self.rate > 0 else math.inf

    def train(self, seconds: float) -> None:
        """Pay what is owed, then train; work beyond its samples is dropped."""
        work = self.rate * seconds
        paid = min(self.owed, work)
        self.owed -= paid
        self.done = min(self.done + work - paid, self.kind.samples)

    def preempt(self, left: frozenset[str]) -> float:
        """Lose these nodes; gives the samples charged."""
        return self._hold(self.nodes - left, self.kind.shrink_stall * self.rate)

    def rescale(self, nodes: frozenset[str], charge_cold_start: bool) -> float:
        """Hold these nodes from now on; gives the samples charged."""
        grown, kind, rate = len(nodes) - len(self.nodes), self.kind, self.kind.rate(len(nodes))
        if not grown:
            return self._hold(nodes, 0.0)
        before = rate if self.rate == 0.0 and charge_cold_start else self.rate
        stall = kind.grow_stall if grown > 0 else kind.shrink_stall
        return self._hold(nodes, before * stall + kind.warmup * rate * max(grown, 0) / max(len(nodes), 1))

    def _hold(self, nodes: frozenset[str], charge: float) -> float:
        self.nodes, self.rate = nodes, self.kind.rate(len(nodes))
        self.owed += charge
        return charge

    def demand(self) -> Demand:
        """As decide() sees it."""
        kind = self.kind
        return Demand(
            training=self.name,
            owner=OWNER,
            min_nodes=kind.min_nodes,
            max_nodes=kind.max_nodes,
            curve=kind.curve,
            stall_seconds=kind.grow_stall,
            shrink_stall_seconds=kind.shrink_stall,
            warmup_seconds=kind.warmup,
            nodes=self.nodes,
        )
