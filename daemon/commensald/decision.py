"""What decide() takes and gives: demands, pilots, the policy, the decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from commensald.allocate.elastic import ElasticBatch

AllocatorName = Literal["exact", "milp", "equal", "equal-fair", "batch"]
BigM = Literal["published", "correct"]


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """A training as the allocator sees it; ``nodes`` are those its members hold now."""

    training: str
    owner: str
    account: str | None = None
    min_nodes: int = 1
    max_nodes: int = 1
    floor_nodes: int = 0
    """So many it has for sure while all floors fit (allocate/floors.py)."""
    weight: float = 1.0
    curve: tuple[tuple[int, float], ...] = ((1, 1.0),)
    """(nodes, samples per second), ascending; linear between, flat beyond the last point."""
    stall_seconds: float = 0.0
    shrink_stall_seconds: float | None = None
    """Stall of a planned shrink where it differs (FreeTrain's R_dw, research/papers.md 1.2); ``None``: as ``stall_seconds``."""
    warmup_seconds: float = 0.0
    node_seconds: tuple[float, ...] = ()
    """How long each node that it may have is expected to stay, its own first; the last for all further ones. (): for the look-ahead."""
    elastic: ElasticBatch | None = None
    """A batch that may be chosen with the nodes (allocator "batch"); ``None``: fixed."""
    nodes: frozenset[str] = frozenset()
    active: bool = True
    """False while paused, backing off or finished: it gets nothing."""

    @property
    def stalls(self) -> tuple[float, float]:
        """Seconds without a step when it shrinks, when it grows."""
        shrink = self.stall_seconds if self.shrink_stall_seconds is None else self.shrink_stall_seconds
        return shrink, self.stall_seconds


class Pilot(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot of ours that is pending or running; ``node`` is known once aimed or started."""

    uuid: str
    owner: str
    node: str | None
    running: bool
    ends: float | None = None
    preempted: bool = False
    """The scheduler has claimed its node: it is leaving and counts for nothing."""


class Cap(msgspec.Struct, frozen=True, kw_only=True):
    """At most ``most`` of ``nodes`` for the trainings of ``owner`` and ``account`` together; ``None``: of all nodes, of all owners."""

    most: int
    nodes: frozenset[str] | None = None
    owner: str | None = None
    account: str | None = None


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How decisions are made; seconds unless named otherwise, ``None`` is without limit."""

    allocator: AllocatorName = "exact"
    """Who shares the nodes among trainings (allocate/choice.py)."""
    look_ahead_seconds: float = 120.0
    """Over this time a rescale must pay for itself (research/policy.md, section D)."""
    fair_share: float = 0.0
    """This part of its share by weight is every training's floor."""
    survival_aware: bool = False
    """Value a node for as long as it is expected to stay, not for the look-ahead: loses 2 to 5 points (research/policy.md, section D)."""
    survival_cap_seconds: float = 600.0
    """No node is valued for longer."""
    caps: tuple[Cap, ...] = ()
    """For the allocator "milp"."""
    milp_over: Literal["nodes", "counts"] = "nodes"
    """The published programme, or the same optimum over counts of alike nodes, for pools on which the former comes to no end."""
    big_m: BigM = "correct"
    """Which bound the published programme uses: "published" repeats FreeTrain's fault (research/papers.md 1.3)."""
    milp_seconds: float = 10.0
    """When it has proved no optimum by then, everybody keeps what they hold."""
    start_lag_seconds: float = 2.0
    """From a decision to the start of its pilot."""
    minimum_window_seconds: float = 10.0
    """A shorter pilot is not worth its start."""
    max_minutes: float | None = None
    """Longest time limit to ask for."""
    max_pilots: int | None = None
    """Most pilots at once, pending and running."""
    standing: int = 0
    """Pilots without a node that should be pending, if the trainings can use them."""
    submissions: int | None = None
    """Most pilots to submit now."""
    left_alone: frozenset[str] = frozenset()
    """Nodes on which pilots have died at once."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot to submit."""

    owner: str
    node: str | None
    time_limit: float | None
    reason: str


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted; the service acts on the difference to what is there."""

    submit: tuple[Request, ...] = ()
    cancel: tuple[str, ...] = ()
    """Uuids of pilots that nobody wants any more."""
    nodes: Mapping[str, frozenset[str]] = {}
    """Training -> the nodes its members should hold."""
    notes: tuple[str, ...] = ()
    """What an administrator should know."""
