"""What a scheduler shows, frozen.

Every scheduler room turns its own dialect into these types, and everything behind it (forecast, allocation, replay) reads nothing else.
Times are epoch seconds UTC from the scheduler's own clock, durations are seconds, ``None`` is unlimited or unknown and never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec

PILOT_TAG = "commensal:"
"""A pilot's comment is this prefix followed by its uuid."""


class NodeState(StrEnum):
    """Base states of a node, in Slurm's words (``scontrol show node``, slurm.h)."""

    IDLE = "IDLE"
    ALLOCATED = "ALLOCATED"
    MIXED = "MIXED"
    DOWN = "DOWN"
    ERROR = "ERROR"
    FUTURE = "FUTURE"
    UNKNOWN = "UNKNOWN"


class JobState(StrEnum):
    """What a job means to us; each scheduler room maps its own words to these."""

    PENDING = "PENDING"
    HELD = "HELD"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    COMPLETING = "COMPLETING"
    ENDED = "ENDED"
    UNKNOWN = "UNKNOWN"
    """The scheduler's word was not understood: the job counts as present."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One host; ``flags`` are the scheduler's modifiers in upper case (``PLANNED``, ``DRAIN``...)."""

    name: str
    state: NodeState
    flags: frozenset[str] = frozenset()
    cpus: int = 1
    gpus: int = 0
    memory_mib: int = 0
    cpus_used: int = 0
    gpus_used: int = 0
    features: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()
    reservation: str | None = None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One job of anybody; ids are opaque strings.

    ``start`` is when it began, or for a pending job when the scheduler plans to begin it; ``end`` likewise.
    ``nodes`` are the allocated ones, ``planned_nodes`` those the scheduler holds for it.
    """

    id: str
    name: str
    owner: str
    state: JobState
    node_count: int
    account: str = ""
    partition: str = ""
    nodes: tuple[str, ...] = ()
    submitted: float | None = None
    eligible: float | None = None
    start: float | None = None
    end: float | None = None
    time_limit: float | None = None
    priority: float = 0.0
    planned_nodes: tuple[str, ...] = ()
    comment: str = ""
    preempted_at: float | None = None

    def pilot(self, owner: str) -> str | None:
        """The uuid of our pilot, when this job is one: the tag counts only on a job of our own account."""
        if self.owner != owner or not self.comment.startswith(PILOT_TAG):
            return None
        return self.comment.removeprefix(PILOT_TAG)


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes kept for somebody from ``start`` to ``end`` (``None``: no end)."""

    name: str
    nodes: frozenset[str]
    start: float
    end: float | None
    flags: frozenset[str] = frozenset()


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the scheduler says of itself, read rarely."""

    product: str
    version: str
    grace_seconds: float = 0.0
    backfill_resolution_seconds: float = 0.0
    whole_minutes: bool = False
    """Time limits are whole minutes (Slurm); a pilot's limit is rounded down to one."""
    extra: Mapping[str, str] = MappingProxyType({})


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One consistent look at the cluster; a failed or partial query never makes one."""

    taken: float
    nodes: tuple[Node, ...]
    jobs: tuple[Job, ...]
    reservations: tuple[Reservation, ...]
    facts: Facts
