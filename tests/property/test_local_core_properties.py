"""The embedded cluster's core under any workload: what the host and the pilots may rely on."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from commensald.cluster import Reservation
from commensald.schedulers.local.core import Core
from commensald.schedulers.local.jobs import Action, Assign, JobSpec, Policy, Start
from commensald.schedulers.local.virtual import Behaviour, VirtualCluster

NODES = tuple(f"n{i}" for i in range(1, 6))
GRACE_SECONDS = 7.0


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """A job that comes at ``at``."""

    at: float
    spec: JobSpec
    behaviour: Behaviour


moments = st.integers(0, 60).map(float)


@st.composite
def primaries(draw: st.DrawFn) -> list[Arrival]:
    """Primary jobs that keep their limits."""
    jobs = []
    for i in range(draw(st.integers(1, 12))):
        seconds = float(draw(st.integers(1, 20)))
        limit = draw(st.none() | st.integers(0, 20).map(lambda more, ran=seconds: ran + more))
        spec = JobSpec(
            id=f"p{i}",
            name="p",
            owner="u",
            node_count=draw(st.integers(1, len(NODES))),
            time_limit=limit,
            tier=draw(st.integers(1, 2)),
            priority=float(draw(st.integers(0, 2))),
        )
        jobs.append(Arrival(at=draw(moments), spec=spec, behaviour=Behaviour(seconds=seconds)))
    return jobs


@st.composite
def pilots(draw: st.DrawFn, exit_seconds: st.SearchStrategy[float]) -> list[Arrival]:
    """Pilots, aimed and standing, that leave so long after a signal."""
    jobs = []
    for i in range(draw(st.integers(0, 15))):
        node = draw(st.none() | st.sampled_from(NODES))
        limit = draw(st.none() | st.integers(1, 40).map(float))
        spec = JobSpec(id=f"c{i}", name="c", owner="me", pilot=f"uuid{i}", node=node, time_limit=limit)
        jobs.append(Arrival(at=draw(moments), spec=spec, behaviour=Behaviour(exit_seconds=draw(exit_seconds))))
    return jobs


slow = st.sampled_from([0.0, 1.0, 3.0, 20.0, math.inf])
policies = st.booleans().map(lambda slurm: Policy(grace_seconds=GRACE_SECONDS, kill_wait_seconds=5.0, slurm_like=slurm))


def drive(cluster: VirtualCluster, arrivals: list[Arrival]) -> Iterator[tuple[float, list[Action]]]:
    """Run to the end, checking at each moment that jobs never share a node; gives each moment and what was done."""
    queue, now = sorted(arrivals, key=lambda a: (a.at, a.spec.id)), 0.0
    while due := [at for at in (cluster.next_moment(now), queue[0].at if queue else None) if at is not None]:
        now = max(now, min(due))
        while queue and queue[0].at <= now:
            arrival = queue.pop(0)
            cluster.submit(arrival.spec, arrival.behaviour, now)
        yield now, cluster.step(now)
        check_nodes(cluster.core)


def play(policy: Policy, arrivals: list[Arrival]) -> list[tuple[float, Action]]:
    """All that was done, in order."""
    return [(now, action) for now, actions in drive(VirtualCluster(Core(NODES, policy)), arrivals) for action in actions]


def check_nodes(core: Core) -> None:
    """No node has two processes' jobs, and none is held by a job that is gone."""
    busy = [node for entry in core.jobs.values() if entry.started is not None for node in entry.nodes]
    assert len(busy) == len(set(busy))
    assigned = [node for e in core.jobs.values() if e.assigned is not None and e.spec.pilot is None for node in e.nodes]
    assert sorted(assigned) == sorted(core.primary_on)


def moments_of(history: list[tuple[float, Action]], kind: type[Action]) -> dict[str, float]:
    """When each job had its first action of this kind."""
    return {action.job: at for at, action in reversed(history) if isinstance(action, kind)}


@given(policy=policies, hosts=primaries(), guests=pilots(slow))
@settings(max_examples=50, deadline=None)
def test_a_primary_waits_for_pilots_no_longer_than_grace(policy: Policy, hosts: list[Arrival], guests: list[Arrival]) -> None:
    history = play(policy, hosts + guests)
    assigned, started = moments_of(history, Assign), moments_of(history, Start)
    for arrival in hosts:
        assert started[arrival.spec.id] - assigned[arrival.spec.id] <= GRACE_SECONDS


@given(hosts=primaries(), guests=pilots(st.just(0.0)))
@settings(max_examples=50, deadline=None)
def test_pilots_that_leave_at_once_change_nothing_for_primaries(hosts: list[Arrival], guests: list[Arrival]) -> None:
    names = {arrival.spec.id for arrival in hosts}

    def seen(arrivals: list[Arrival]) -> list[tuple[float, Action]]:
        return [(at, a) for at, a in play(Policy(), arrivals) if a.job in names and isinstance(a, Assign)]

    assert seen(hosts + guests) == seen(hosts)


@given(hosts=primaries(), guests=pilots(st.just(0.0)))
@settings(max_examples=50, deadline=None)
def test_slurm_like_pilots_never_move_the_times_of_primaries(hosts: list[Arrival], guests: list[Arrival]) -> None:
    policy = Policy(slurm_like=True)
    alone, shared = play(policy, hosts), play(policy, hosts + guests)
    names = {arrival.spec.id for arrival in hosts}
    assert {j: at for j, at in moments_of(shared, Start).items() if j in names} == moments_of(alone, Start)


@given(policy=policies, hosts=primaries(), guests=pilots(slow))
@settings(max_examples=50, deadline=None)
def test_a_claimed_pilot_is_told_at_the_same_moment(policy: Policy, hosts: list[Arrival], guests: list[Arrival]) -> None:
    cluster = VirtualCluster(Core(NODES, policy))
    for now, actions in drive(cluster, hosts + guests):
        jobs = cluster.core.jobs
        for claim in (action for action in actions if isinstance(action, Assign) and action.job in jobs):
            pilots_there = {cluster.core.pilot_on[node] for node in claim.nodes if node in cluster.core.pilot_on}
            if jobs[claim.job].spec.pilot is None:
                assert all(jobs[pilot].preempted_at == now or jobs[pilot].reason is not None for pilot in pilots_there)
        assert all(jobs[pilot].reason is not None for node, pilot in cluster.core.pilot_on.items() if node in cluster.core.primary_on)


@given(hosts=primaries())
@settings(max_examples=50, deadline=None)
def test_backfill_never_delays_the_head(hosts: list[Arrival]) -> None:
    hosts = [msgspec.structs.replace(a, spec=msgspec.structs.replace(a.spec, tier=1, priority=0.0)) for a in hosts]
    cluster, promised = VirtualCluster(Core(NODES, Policy())), dict[str, float]()
    for _ in drive(cluster, hosts):
        head = cluster.core.head
        if head is not None:
            assert head.start <= promised.get(head.job, math.inf)
            promised[head.job] = head.start
    assert all(cluster.started[job] <= at for job, at in promised.items())


@given(hosts=primaries(), nodes=st.sets(st.sampled_from(NODES), min_size=1), start=moments, seconds=st.integers(1, 30))
@settings(max_examples=50, deadline=None)
def test_no_primary_that_keeps_its_limit_runs_into_a_reservation(hosts: list[Arrival], nodes: set[str], start: float, seconds: int) -> None:
    cluster = VirtualCluster(Core(NODES, Policy()))
    cluster.core.reserve(Reservation(name="r", nodes=frozenset(nodes), start=start, end=start + seconds))
    for now, _ in drive(cluster, hosts):
        if start <= now < start + seconds:
            assert not nodes & set(cluster.core.primary_on)
    assert not cluster.core.jobs
