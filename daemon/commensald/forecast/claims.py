"""Who holds each node now and from when: running jobs and reservations read off a snapshot, our own pilots left out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from commensald.cluster import Job, JobState, Node, NodeState, Reservation, Snapshot
from commensald.harvest import Harvest, harvest, harvestable

OVERRUN_SECONDS = 300.0
"""A job past its planned end is planned to end this much later (research/policy.md, section C)."""

HOLDING = frozenset({JobState.RUNNING, JobState.SUSPENDED, JobState.COMPLETING, JobState.UNKNOWN})


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """``nodes`` are taken from ``start`` to ``end`` (infinity: for good) by the job or reservation ``by``."""

    by: str
    start: float
    end: float
    nodes: frozenset[str]
    reason: str


class Holders(msgspec.Struct, frozen=True, kw_only=True):
    """What the snapshot says of each node: ``free_from`` is now for a node that is idle or ours, infinity when nobody knows."""

    at: float
    free_from: Mapping[str, float]
    held: frozenset[str]
    """Nodes with a pilot of ours that has not been preempted, and no other job."""
    open: frozenset[str]
    """Nodes that are a pilot's now: idle and harvestable, or held."""


def holders(snapshot: Snapshot, owner: str, now: float) -> Holders:
    """Read who is where. A preempted pilot's node belongs to whoever preempted it and is not open."""
    free_from = {node.name: now if node.state is NodeState.IDLE and "COMPLETING" not in node.flags else math.inf for node in snapshot.nodes}
    pilots, primary = _split(snapshot.jobs, owner)
    leaving = frozenset(name for job in pilots if _leaving(job) for name in job.nodes)
    taken = leaving.union(*(job.nodes for job in primary))
    held = frozenset(name for job in pilots for name in job.nodes) - taken
    ends = dict.fromkeys(held, now)
    ends |= {name: now + max(snapshot.facts.grace_seconds, 1.0) for name in leaving}
    for job in primary:
        ends |= {name: max(ends.get(name, now), _end(job, now)) for name in job.nodes}
    completing = {node.name: now + OVERRUN_SECONDS for node in snapshot.nodes if "COMPLETING" in node.flags}
    return Holders(
        at=now,
        free_from=free_from | completing | {name: end for name, end in ends.items() if name in free_from},
        held=held,
        open=frozenset(node.name for node in snapshot.nodes if _open(node, held, taken)),
    )


def _split(jobs: Sequence[Job], owner: str) -> tuple[list[Job], list[Job]]:
    present = [job for job in jobs if job.state in HOLDING and job.nodes]
    ours = [job for job in present if job.pilot(owner) is not None]
    return ours, [job for job in present if job.pilot(owner) is None]


def _leaving(pilot: Job) -> bool:
    return pilot.preempted_at is not None or pilot.state is JobState.COMPLETING


def _end(job: Job, now: float) -> float:
    if job.state is JobState.SUSPENDED or job.end is None:
        return math.inf
    return job.end if job.end > now else now + OVERRUN_SECONDS


def _open(node: Node, held: frozenset[str], taken: frozenset[str]) -> bool:
    if node.name in taken:
        return False
    return harvest(node) >= Harvest.STAY if node.name in held else harvestable(node)


def reserved(reservations: Sequence[Reservation], now: float) -> list[Claim]:
    """Reservations that last or are to come, as claims."""
    return [
        Claim(
            by=each.name,
            start=max(each.start, now),
            end=math.inf if each.end is None else each.end,
            nodes=each.nodes,
            reason=f"reservation {each.name}",
        )
        for each in reservations
        if each.end is None or each.end > now
    ]
