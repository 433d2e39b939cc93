"""decide() on clusters of any shape: what it may never do, whatever it is shown."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from commensald.cluster import PILOT_TAG, Facts, Job, JobState, Node, NodeState, Snapshot
from commensald.decide import Decision, Demand, Pilot, Policy, decide
from commensald.decision import AllocatorName
from commensald.forecast import make_forecast
from commensald.forecast.survival import fit
from commensald.harvest import Harvest, harvest, harvestable

NOW = 1_000_000.0
ME = "harvester"
NAMES = [f"n{index}" for index in range(6)]
PRIOR = fit((), NOW)
ALLOCATORS = [each for each in get_args(AllocatorName) if each != "milp" or find_spec("highspy")]
World = tuple[Snapshot, list[Demand], list[Pilot], Policy]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Each node is idle, a primary's, a pilot's, or broken; some pilots are preempted, some pending."""
    nodes, jobs, pilots = [], [], []
    for name in NAMES:
        flags = draw(st.frozensets(st.sampled_from(["PLANNED", "DRAIN", "NOT_RESPONDING", "STRANGE"]), max_size=1))
        use = draw(st.sampled_from(["idle", "idle", "primary", "pilot", "preempted", "pending", "down"]))
        state = {"idle": NodeState.IDLE, "pending": NodeState.IDLE, "down": NodeState.DOWN}.get(use, NodeState.ALLOCATED)
        nodes.append(Node(name=name, state=state, flags=flags))
        if use in ("primary", "pilot", "preempted"):
            jobs.append(_running(name, use))
        if use in ("pilot", "preempted", "pending"):
            pilots.append(Pilot(uuid=f"p-{name}", owner=ME, node=name, running=use != "pending", preempted=use == "preempted"))
    jobs += [_queued(k, *draw(st.tuples(st.integers(1, 6), st.integers(5, 900)))) for k in range(draw(st.integers(0, 3)))]
    holders = draw(st.lists(st.integers(0, 3), min_size=6, max_size=6))
    demands = [
        draw(_demand(j, frozenset(n for n, k in zip(NAMES, holders, strict=True) if j == k))) for j in range(draw(st.integers(0, 3)))
    ]
    pilots += [Pilot(uuid=f"s{each}", owner=ME, node=None, running=False) for each in range(draw(st.integers(0, 2)))]
    policy = Policy(
        allocator=draw(st.sampled_from(ALLOCATORS)),
        max_pilots=draw(st.none() | st.integers(1, 6)),
        standing=draw(st.integers(0, 3)),
        submissions=draw(st.none() | st.integers(0, 4)),
        left_alone=draw(st.just(frozenset[str]()) | st.frozensets(st.sampled_from(NAMES), max_size=2)),
    )
    facts = Facts(product="hand", version="1", whole_minutes=draw(st.booleans()))
    return Snapshot(taken=NOW, nodes=tuple(nodes), jobs=tuple(jobs), reservations=(), facts=facts), demands, pilots, policy


def _running(name: str, use: str) -> Job:
    mine = use != "primary"
    return Job(
        id=f"j-{name}",
        name="",
        owner=ME if mine else "alice",
        state=JobState.RUNNING,
        node_count=1,
        nodes=(name,),
        end=NOW + 300,
        comment=f"{PILOT_TAG}p-{name}" if mine else "",
        preempted_at=NOW - 1 if use == "preempted" else None,
    )


def _queued(index: int, count: int, seconds: int) -> Job:
    return Job(id=f"q{index}", name="", owner="alice", state=JobState.PENDING, node_count=count, time_limit=seconds, submitted=NOW - 30)


@st.composite
def _demand(draw: st.DrawFn, index: int, nodes: frozenset[str]) -> Demand:
    least = draw(st.integers(1, 2))
    most = least + draw(st.integers(0, 4))
    curve = ((1, 10.0), (most + 1, 10.0 + 8.0 * most))
    stall = draw(st.floats(0.0, 5.0))
    return Demand(
        training=f"t{index}",
        owner=ME,
        min_nodes=least,
        max_nodes=most,
        curve=curve,
        stall_seconds=stall,
        nodes=nodes,
        active=draw(st.booleans()),
    )


def run(world: World) -> Decision:
    snapshot, demands, pilots, policy = world
    return decide(snapshot, make_forecast(snapshot, ME, (), NOW, PRIOR), demands, pilots, NOW, policy)


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_it_aims_only_at_harvestable_nodes_one_pilot_each_and_no_more_than_wanted(world: World) -> None:
    snapshot, demands, pilots, policy = world
    decision = run(world)
    nodes = {each.name: each for each in snapshot.nodes}
    targets = Counter(each.node for each in decision.submit) + Counter(each.node for each in pilots)
    aimed = [each.node for each in decision.submit if each.node is not None]
    assert all(harvestable(nodes[each]) and each not in policy.left_alone for each in aimed)
    assert all(count == 1 for node, count in targets.items() if node is not None)
    live = [each for each in pilots if not each.preempted and each.uuid not in decision.cancel]
    standing = sum(each.node is None for each in (*live, *decision.submit))
    assert standing <= (0 if policy.left_alone else policy.standing)
    assert policy.submissions is None or len(decision.submit) <= policy.submissions
    if decision.submit:
        assert len(live) + len(decision.submit) <= sum(each.max_nodes for each in demands if each.active)
        assert policy.max_pilots is None or len(live) + len(decision.submit) <= policy.max_pilots


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_it_shares_only_nodes_with_a_running_pilot_each_once(world: World) -> None:
    snapshot, demands, pilots, _ = world
    decision = run(world)
    bad = {each.name for each in snapshot.nodes if harvest(each) is Harvest.LEAVE}
    running = {each.node for each in pilots if each.running and not each.preempted and each.uuid not in decision.cancel} - bad
    given_out = [node for nodes in decision.nodes.values() for node in nodes]
    assert len(given_out) == len(set(given_out))
    assert set(given_out) <= running
    for each in demands:
        size = len(decision.nodes[each.training])
        assert size == 0 or (each.active and each.min_nodes <= size <= each.max_nodes)


@settings(max_examples=70, deadline=None)
@given(worlds())
def test_it_depends_on_nothing_else_and_not_on_order(world: World) -> None:
    snapshot, demands, pilots, policy = world
    assert run(world) == run((snapshot, demands[::-1], pilots[::-1], policy))


@settings(max_examples=70, deadline=None)
@given(worlds())
def test_what_it_decided_it_does_not_undo(world: World) -> None:
    """Once the nodes are as decided, the same cluster asks for no other nodes."""
    snapshot, demands, pilots, policy = world
    first = run(world)
    settled = [
        Demand(**{name: getattr(each, name) for name in each.__struct_fields__} | {"nodes": first.nodes[each.training]}) for each in demands
    ]
    left = [each for each in pilots if each.uuid not in first.cancel]
    assert run((snapshot, settled, left, policy)).nodes == first.nodes


@settings(max_examples=70, deadline=None)
@given(worlds())
def test_it_never_cancels_a_pilot_whose_member_is_at_work(world: World) -> None:
    _, demands, pilots, _ = world
    at_work = {node for each in demands for node in each.nodes}
    cancelled = run(world).cancel
    assert not [each for each in pilots if each.uuid in cancelled and each.running and each.node in at_work]


@settings(max_examples=70, deadline=None)
@given(worlds())
def test_pilots_go_when_nobody_is_active_and_no_member_is_at_work(world: World) -> None:
    snapshot, demands, pilots, policy = world
    idle = [Demand(training=each.training, owner=ME, active=False) for each in demands]
    decision = run((snapshot, idle, pilots, policy))
    assert decision.submit == ()
    assert set(decision.cancel) == {each.uuid for each in pilots if not each.preempted}
