"""The embedded cluster as a scheduler shows itself: a :class:`~commensald.cluster.Snapshot` in Slurm's words."""

from __future__ import annotations

import math

from commensald import cluster
from commensald.schedulers.local.core import Core
from commensald.schedulers.local.entry import Entry
from commensald.schedulers.local.jobs import Policy
from commensald.schedulers.local.plan import Planned

PRODUCT = "local"


def facts(policy: Policy, version: str) -> cluster.Facts:
    """What the cluster says of its settings."""
    extra = {"kill_wait_seconds": f"{policy.kill_wait_seconds:g}", "preempt_signal": policy.preempt_signal}
    return cluster.Facts(product=PRODUCT, version=version, grace_seconds=policy.grace_seconds, whole_minutes=policy.slurm_like, extra=extra)


def snapshot(core: Core, now: float, version: str) -> cluster.Snapshot:
    """The whole cluster at ``now``, as of the last ``advance``."""
    planned = {p.job: p for p in core.plan(now)}
    return cluster.Snapshot(
        taken=now,
        nodes=_nodes(core, now),
        jobs=tuple(_job(core, entry, planned.get(entry.spec.id)) for entry in core.jobs.values()),
        reservations=tuple(core.reservations.values()),
        facts=facts(core.policy, version),
    )


def _nodes(core: Core, now: float) -> tuple[cluster.Node, ...]:
    reserved, held = core.reserved(now), _held(core)
    return tuple(_node(core, name, reserved.get(name), name in held) for name in core.nodes)


def _held(core: Core) -> set[str]:
    """Nodes kept for somebody: the head's, and those of jobs that wait for a pilot to leave another node."""
    held = {node for e in core.jobs.values() if e.assigned is not None and e.started is None for node in e.nodes}
    return held | set(core.head.nodes if core.head is not None else ())


def _node(core: Core, name: str, reservation: str | None, held: bool) -> cluster.Node:
    state = _state(core, name)
    flags = {"PLANNED"} if held and state is cluster.NodeState.IDLE else set()
    return cluster.Node(
        name=name,
        state=state,
        flags=frozenset(flags | ({"RESERVED"} if reservation else set())),
        cpus_used=int(state is cluster.NodeState.ALLOCATED),
        partitions=frozenset({"primary", "scavenger"}),
        reservation=reservation,
    )


def _state(core: Core, name: str) -> cluster.NodeState:
    if name in core.down:
        return cluster.NodeState.DOWN
    job = core.primary_on.get(name)
    running = name in core.pilot_on or (job is not None and core.jobs[job].started is not None)
    return cluster.NodeState.ALLOCATED if running else cluster.NodeState.IDLE


def _job(core: Core, entry: Entry, planned: Planned | None) -> cluster.Job:
    spec, running = entry.spec, entry.started is not None
    start, waits_for = _expected(entry, planned)
    return cluster.Job(
        id=spec.id,
        name=spec.name,
        owner=spec.owner,
        state=_job_state(entry),
        node_count=spec.node_count,
        partition="primary" if spec.pilot is None else "scavenger",
        nodes=entry.nodes if running else (),
        submitted=entry.submitted,
        eligible=entry.submitted,
        start=start,
        end=_end(core, entry, start),
        time_limit=entry.limit,
        priority=spec.priority,
        planned_nodes=() if running else waits_for,
        comment="" if spec.pilot is None else cluster.PILOT_TAG + spec.pilot,
        preempted_at=entry.preempted_at,
    )


def _expected(entry: Entry, planned: Planned | None) -> tuple[float | None, tuple[str, ...]]:
    """When it started or is planned to, and on which nodes."""
    if entry.started is not None:
        return entry.started, entry.nodes
    if entry.assigned is not None:
        return entry.assigned, entry.nodes
    return (planned.start, planned.nodes) if planned is not None else (None, ())


def _end(core: Core, entry: Entry, start: float | None) -> float | None:
    end = math.inf if start is None else start + entry.seconds
    if entry.preempted_at is not None:
        end = min(end, entry.preempted_at + core.policy.grace_seconds)
    return end if end < math.inf else None


def _job_state(entry: Entry) -> cluster.JobState:
    """A preempted pilot is RUNNING through its grace, as Slurm shows it; a killed job is COMPLETING until it is reaped."""
    if entry.started is None:
        return cluster.JobState.PENDING
    return cluster.JobState.COMPLETING if entry.kill_at == math.inf else cluster.JobState.RUNNING
