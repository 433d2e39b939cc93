"""The plan against conservative backfill written out second by second on small clusters."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from commensald.cluster import Facts, Job, JobState, Node, NodeState, Snapshot
from commensald.forecast.plan import first_claims, plan

NOW = 1_000_000.0
HORIZON = 60


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    size = draw(st.integers(1, 5))
    ends = draw(st.lists(st.integers(0, 12), min_size=size, max_size=size))
    asks = draw(st.lists(st.tuples(st.integers(1, size), st.integers(1, 9)), max_size=6))
    nodes = [Node(name=f"n{i}", state=NodeState.ALLOCATED if end else NodeState.IDLE) for i, end in enumerate(ends)]
    jobs = [_running(f"n{i}", end) for i, end in enumerate(ends) if end]
    jobs += [_pending(f"q{k}", count, seconds, -k) for k, (count, seconds) in enumerate(asks)]
    return Snapshot(taken=NOW, nodes=tuple(nodes), jobs=tuple(jobs), reservations=(), facts=Facts(product="hand", version="1"))


def _running(node: str, end: int) -> Job:
    return Job(id=f"r{node}", name="", owner="alice", state=JobState.RUNNING, node_count=1, nodes=(node,), end=NOW + end)


def _pending(job: str, count: int, seconds: int, priority: int) -> Job:
    state = JobState.PENDING
    return Job(id=job, name="", owner="alice", state=state, node_count=count, time_limit=seconds, priority=priority, submitted=NOW)


def by_hand(snapshot: Snapshot) -> Iterator[tuple[str, int, list[str]]]:
    """(job, start, nodes): each job at the first second that has enough nodes for long enough, lowest nodes first."""
    ends = {job.nodes[0]: int(job.end - NOW) for job in snapshot.jobs if job.end is not None}
    busy = {node.name: set(range(ends.get(node.name, 0))) for node in snapshot.nodes}
    for job in sorted((each for each in snapshot.jobs if each.state is JobState.PENDING), key=lambda each: -each.priority):
        for start in range(HORIZON):
            span = set(range(start, start + int(job.time_limit or 0)))
            nodes = [name for name, taken in busy.items() if not span & taken][: job.node_count]
            if len(nodes) == job.node_count:
                yield job.id, start, nodes
                for name in nodes:
                    busy[name] |= span
                break


@settings(max_examples=150, deadline=None)
@given(clusters())
def test_the_plan_is_conservative_backfill(snapshot: Snapshot) -> None:
    expected = {job: (start, set(nodes)) for job, start, nodes in by_hand(snapshot)}
    claims = plan(snapshot, "harvester", NOW, HORIZON)
    assert {each.by: (int(each.start - NOW), set(each.nodes)) for each in claims} == expected


@settings(max_examples=50, deadline=None)
@given(clusters())
def test_no_two_claims_overlap_and_the_first_is_the_close(snapshot: Snapshot) -> None:
    claims = plan(snapshot, "harvester", NOW, HORIZON)
    first = first_claims(claims)
    for name in {node.name for node in snapshot.nodes}:
        mine = sorted((each.start, each.end) for each in claims if name in each.nodes)
        assert all(before[1] <= after[0] for before, after in pairwise(mine))
        assert (first[name].start if name in first else None) == (mine[0][0] if mine else None)
