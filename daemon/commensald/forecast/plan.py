"""Plan: who will claim which node, and when, by conservative backfill of the queue over named nodes.

Every pending job gets the earliest place that delays none of higher priority (Mu'alem and Feitelson 2001, conservative backfilling).
Jobs keep the start and the nodes that the scheduler itself plans for them. Nodes go to a job in the order of the snapshot, nodes that
run a pilot last. A job that could start now, has waited long enough to be seen and is still pending is held by something that we do not
know, and is skipped (research/policy.md, section C). The plan reaches ``horizon_seconds`` far, as ``bf_window`` does in Slurm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from commensald.cluster import Job, JobState, Node, Snapshot
from commensald.forecast.claims import OVERRUN_SECONDS, Claim, Holders, holders, reserved
from commensald.forecast.profile import Mask, Profile, bits, lowest
from commensald.harvest import schedulable

HORIZON_SECONDS = 86_400.0
SEEN_SECONDS = 60.0
"""A job that waits longer than this has been looked at by the scheduler (Slurm's ``sched_interval`` is 60 s)."""


def plan(snapshot: Snapshot, owner: str, now: float, horizon_seconds: float = HORIZON_SECONDS) -> tuple[Claim, ...]:
    """All claims from ``now`` on: reservations, then pending jobs in the order in which they were placed."""
    present = holders(snapshot, owner, now)
    places = _Places(snapshot.nodes, present, now)
    claims = reserved(snapshot.reservations, now)
    for claim in claims:
        places.take(claim)
    for job in waiting(snapshot.jobs, owner):
        placed = places.place(job, now, now + horizon_seconds)
        if placed is not None:
            places.take(placed)
            claims.append(placed)
    return tuple(claims)


def first_claims(claims: Iterable[Claim]) -> dict[str, Claim]:
    """The earliest claim on each node."""
    first: dict[str, Claim] = {}
    for claim in claims:
        first |= {name: claim for name in claim.nodes if name not in first or claim.start < first[name].start}
    return first


def waiting(jobs: Sequence[Job], owner: str) -> list[Job]:
    """Pending primary jobs: those the scheduler has planned nodes for, then by priority, then by age."""
    pending = [job for job in jobs if job.state is JobState.PENDING and job.pilot(owner) is None]
    return sorted(pending, key=lambda job: (not job.planned_nodes, -job.priority, job.submitted or 0.0, job.id))


class _Places:
    """The profile, with names for its bits and the nodes of each partition."""

    def __init__(self, nodes: Sequence[Node], present: Holders, now: float) -> None:
        self._order = sorted((node for node in nodes if schedulable(node)), key=lambda node: node.name in present.held)
        self._bit = {node.name: 1 << index for index, node in enumerate(self._order)}
        self._all = (1 << len(self._order)) - 1
        self._profile = Profile(now, self._all)
        self._partitions: dict[str, Mask] = {}
        self._placed: dict[Mask, list[tuple[int, float, float]]] = {}
        for until, mask in self._busy(present).items():
            self._profile.take(mask, now, until)

    def _busy(self, present: Holders) -> dict[float, Mask]:
        busy: dict[float, Mask] = {}
        for node in self._order:
            until = present.free_from[node.name]
            busy[until] = busy.get(until, 0) | self._bit[node.name]
        return busy

    def take(self, claim: Claim) -> None:
        """Enter a claim."""
        self._profile.take(self._mask(claim.nodes), claim.start, claim.end)

    def place(self, job: Job, now: float, horizon: float) -> Claim | None:
        """Where ``job`` goes; ``None`` when it is held, does not fit, or would start beyond ``horizon``."""
        seconds = math.inf if job.time_limit is None else job.time_limit
        planned = _planned_start(job, now)
        if planned is not None:
            return self._as_planned(job, planned, seconds) if planned < horizon else None
        among = self._among(job.partition)
        ready = max(now, job.eligible or now)
        start = self._profile.earliest(job.node_count, seconds, among, max(ready, self._bound(job, seconds, among)), horizon)
        if start is None or (start <= now and _seen(job, now)):
            return None
        if ready <= now:
            self._placed.setdefault(among, []).append((job.node_count, seconds, start))
        return self._claim(job, start, seconds, lowest(self._profile.free(start, start + seconds, among), job.node_count))

    def _as_planned(self, job: Job, start: float, seconds: float) -> Claim | None:
        """The scheduler's own plan; where it names too few nodes, those that our profile has free complete it."""
        nodes = self._mask(job.planned_nodes)
        missing = job.node_count - nodes.bit_count()
        if missing > 0:
            free = self._profile.free(start, start + seconds, self._among(job.partition) & ~nodes)
            nodes |= lowest(free, min(missing, free.bit_count()))
        return self._claim(job, start, seconds, nodes, "as the scheduler plans") if nodes else None

    def _bound(self, job: Job, seconds: float, among: Mask) -> float:
        """No job starts before one that was placed already and needs no more: the profile has only filled up since."""
        smaller = (start for count, length, start in self._placed.get(among, ()) if count <= job.node_count and length <= seconds)
        return max(smaller, default=0.0)

    def _claim(self, job: Job, start: float, seconds: float, nodes: Mask, whose: str = "by our plan") -> Claim:
        names = frozenset(self._order[index].name for index in bits(nodes))
        return Claim(by=job.id, start=start, end=start + seconds, nodes=names, reason=f"job {job.id} starts {whose}")

    def _mask(self, names: Iterable[str]) -> Mask:
        mask = 0
        for name in names:
            mask |= self._bit.get(name, 0)
        return mask

    def _among(self, partition: str) -> Mask:
        """Nodes of a job's partitions (comma-separated where it gave several); a cluster without partitions is one."""
        if partition not in self._partitions:
            wanted = frozenset(partition.split(","))
            inside = (node.name for node in self._order if not node.partitions or not partition or node.partitions & wanted)
            self._partitions[partition] = self._mask(inside)
        return self._partitions[partition]


def _planned_start(job: Job, now: float) -> float | None:
    """The scheduler's own planned start. One that has passed still counts while nodes are held for it: it may wait for a pilot to leave."""
    if job.start is None or job.start > now:
        return job.start
    return now if job.planned_nodes and now - job.start <= OVERRUN_SECONDS else None


def _seen(job: Job, now: float) -> bool:
    since = job.eligible if job.eligible is not None else job.submitted
    return since is None or now - since > SEEN_SECONDS
