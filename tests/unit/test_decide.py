"""decide() on clusters small enough to say what is right."""

from __future__ import annotations

from commensald.cluster import PILOT_TAG, Facts, Job, JobState, Node, NodeState, Snapshot
from commensald.decide import Decision, Demand, Pilot, Policy, decide
from commensald.forecast import Forecast
from commensald.forecast.windows import Window

NOW = 1_000_000.0
LINEAR = tuple((nodes, 10.0 * nodes) for nodes in range(1, 9))


def look(*nodes: Node, jobs: tuple[Job, ...] = ()) -> Snapshot:
    return Snapshot(taken=NOW, nodes=nodes, jobs=jobs, reservations=(), facts=Facts(product="hand", version="1"))


def idle(*names: str) -> tuple[Node, ...]:
    return tuple(Node(name=name, state=NodeState.IDLE) for name in names)


def busy(name: str, *flags: str) -> Node:
    return Node(name=name, state=NodeState.ALLOCATED, flags=frozenset(flags))


def holes(*names: str, held: str = "", **closes: float) -> Forecast:
    """Windows open now; ``closes`` are seconds from now."""
    windows = (
        Window(node=name, opens=NOW, closes=NOW + closes[name] if name in closes else None, reason="by hand", held=name in held.split())
        for name in names
    )
    return Forecast(windows=tuple(windows), made=NOW)


def demand(name: str = "t", **more: object) -> Demand:
    fields = {"owner": "me", "max_nodes": 8, "curve": LINEAR, **more}
    return Demand(training=name, **fields)  # type: ignore[arg-type]


def pilot(node: str, *, running: bool = True, owner: str = "me", ends: float | None = None) -> Pilot:
    return Pilot(uuid=f"p-{node}", owner=owner, node=node, running=running, ends=ends)


def run(snapshot: Snapshot, forecast: Forecast, demands: list[Demand], pilots: list[Pilot], **policy: object) -> Decision:
    return decide(snapshot, forecast, demands, pilots, NOW, Policy(**policy))  # type: ignore[arg-type]


def waiting(uuid: str) -> Pilot:
    return Pilot(uuid=uuid, owner="me", node=None, running=False)


def test_every_useful_hole_gets_a_pilot_the_longest_first_up_to_the_cap() -> None:
    cluster, forecast = look(*idle("n1", "n2", "n3", "n4")), holes("n1", "n2", "n3", "n4", n1=60.0, n2=900.0, n3=5.0)
    decision = run(cluster, forecast, [demand()], [])
    assert [(each.node, each.time_limit) for each in decision.submit] == [("n4", None), ("n2", 898.0), ("n1", 58.0)]
    assert [each.node for each in run(cluster, forecast, [demand()], [], max_pilots=2).submit] == ["n4", "n2"]


def test_no_pilot_is_asked_for_that_the_allocator_would_not_use() -> None:
    flat = demand(curve=((1, 10.0), (2, 20.0)))
    assert len(run(look(*idle("n1", "n2", "n3", "n4")), holes("n1", "n2", "n3", "n4"), [flat], []).submit) == 2


def test_a_training_that_needs_three_nodes_asks_for_three_or_none() -> None:
    three = demand(min_nodes=3)
    assert run(look(*idle("n1", "n2")), holes("n1", "n2"), [three], []).submit == ()
    assert len(run(look(*idle("n1", "n2", "n3")), holes("n1", "n2", "n3"), [three], []).submit) == 3
    coming = [pilot("n1", running=False), pilot("n2")]
    decision = run(look(*idle("n1"), busy("n2"), *idle("n3")), holes("n1", "n2", "n3", held="n2"), [three], coming)
    assert [each.node for each in decision.submit] == ["n3"]
    assert decision.nodes == {"t": frozenset()}


def test_a_pending_pilot_that_no_longer_fits_its_hole_is_taken_back() -> None:
    queued = Job(id="7", name="", owner="me", state=JobState.PENDING, node_count=1, time_limit=300.0, comment=f"{PILOT_TAG}p-n1")
    cluster, waiting = look(*idle("n1"), jobs=(queued,)), [pilot("n1", running=False)]
    assert run(cluster, holes("n1", n1=301.0), [demand()], waiting).cancel == ()
    shrunk = run(cluster, holes("n1", n1=299.0), [demand()], waiting)
    assert (shrunk.cancel, shrunk.submit) == (("p-n1",), ())
    assert run(look(busy("n1"), jobs=(queued,)), holes(), [demand()], waiting).cancel == ("p-n1",)


def test_a_pending_pilot_that_the_queue_shows_running_is_kept() -> None:
    assert run(look(busy("n1")), holes("n1", held="n1", n1=1.0), [demand()], [pilot("n1", running=False)]).cancel == ()


def test_a_forecast_older_than_the_snapshot_aims_at_no_busy_node() -> None:
    assert run(look(busy("n1")), holes("n1"), [demand()], []).submit == ()


def test_a_draining_node_is_left_first_and_then_its_pilot_goes() -> None:
    cluster = look(busy("n1", "DRAIN"), busy("n2"))
    pilots = [pilot("n1"), pilot("n2")]
    leaving = run(cluster, holes("n2", held="n2"), [demand(nodes=frozenset({"n1", "n2"}))], pilots)
    assert (leaving.nodes, leaving.cancel) == ({"t": {"n2"}}, ())
    assert run(cluster, holes("n2", held="n2"), [demand(nodes=frozenset({"n2"}))], pilots).cancel == ("p-n1",)


def test_a_window_that_has_closed_does_not_end_a_pilot_that_runs() -> None:
    decision = run(look(busy("n1")), holes("n1", held="n1", n1=0.0), [demand(nodes=frozenset({"n1"}))], [pilot("n1")])
    assert (decision.nodes, decision.cancel) == ({"t": {"n1"}}, ())


def test_a_pilot_near_its_end_keeps_its_member_and_gets_no_other() -> None:
    cluster, forecast, ending = look(busy("n1")), holes("n1", held="n1"), [pilot("n1", ends=NOW + 9.0)]
    kept = run(cluster, forecast, [demand(nodes=frozenset({"n1"}))], ending)
    assert (kept.nodes, kept.cancel) == ({"t": {"n1"}}, ())
    over = run(cluster, forecast, [demand()], ending)
    assert (over.nodes, over.cancel) == ({"t": frozenset()}, ("p-n1",))
    assert run(cluster, forecast, [demand()], [pilot("n1", ends=NOW + 10.0)]).cancel == ()


def test_pilots_beyond_what_all_trainings_can_hold_go_the_soonest_taken_first() -> None:
    cluster, forecast = look(busy("n1"), busy("n2"), busy("n3")), holes("n1", "n2", "n3", held="n1 n2 n3", n3=20.0)
    decision = run(cluster, forecast, [demand(max_nodes=2, nodes=frozenset({"n1"}))], [pilot("n1"), pilot("n2"), pilot("n3")])
    assert decision.cancel == ("p-n3",)
    assert decision.nodes == {"t": {"n1", "n2"}}


def test_a_paused_training_keeps_its_pilots_until_its_members_have_left() -> None:
    cluster, forecast = look(busy("n1"), busy("n2")), holes("n1", "n2", held="n1 n2")
    paused = demand(active=False, nodes=frozenset({"n1"}))
    decision = run(cluster, forecast, [paused], [pilot("n1"), pilot("n2")])
    assert (decision.nodes, decision.cancel) == ({"t": frozenset()}, ("p-n2",))


def test_an_owners_pilots_serve_only_that_owner() -> None:
    cluster, forecast = look(busy("n1"), *idle("n2")), holes("n1", "n2", held="n1")
    decision = run(cluster, forecast, [demand("a", owner="ann"), demand("b", owner="bob")], [pilot("n1", owner="bob")])
    assert decision.nodes == {"a": frozenset(), "b": {"n1"}}
    assert [(each.owner, each.node) for each in decision.submit] == [("ann", "n2")]


def test_equal_trainings_share_equally_when_returns_diminish() -> None:
    names = tuple(f"n{index}" for index in range(6))
    root = tuple((nodes, nodes**0.5) for nodes in range(1, 9))
    decision = run(
        look(*(busy(name) for name in names)),
        holes(*names, held=" ".join(names)),
        [demand("a", curve=root), demand("b", curve=root)],
        [pilot(name) for name in names],
    )
    assert [len(nodes) for nodes in decision.nodes.values()] == [3, 3]


def test_a_few_stand_by_for_the_next_hole_within_what_the_trainings_can_use() -> None:
    cluster, forecast = look(busy("n1"), *idle("n2")), holes("n1", "n2", held="n1")
    decision = run(cluster, forecast, [demand()], [pilot("n1")], standing=2)
    assert [each.node for each in decision.submit] == ["n2", None, None]
    assert [each.node for each in run(cluster, forecast, [demand(max_nodes=3)], [pilot("n1")], standing=2).submit] == ["n2", None]
    assert [each.node for each in run(cluster, forecast, [demand(max_nodes=2)], [pilot("n1")], standing=2).submit] == ["n2"]
    assert [each.node for each in run(cluster, forecast, [demand()], [pilot("n1")], standing=2, max_pilots=3).submit] == ["n2", None]
    again = run(cluster, forecast, [demand()], [pilot("n1"), waiting("a"), waiting("b")], standing=2)
    assert ([each.node for each in again.submit], again.cancel) == (["n2"], ())


def test_standing_pilots_are_withdrawn_when_they_are_not_wanted() -> None:
    cluster, forecast = look(busy("n1")), holes("n1", held="n1")
    pilots = [pilot("n1"), waiting("a"), waiting("b")]
    assert run(cluster, forecast, [demand()], pilots, standing=1).cancel == ("b",)
    assert run(cluster, forecast, [demand()], pilots).cancel == ("a", "b")
    assert len(run(cluster, forecast, [demand(max_nodes=2)], pilots, standing=2).cancel) == 1
    assert set(run(cluster, forecast, [demand(active=False, nodes=frozenset({"n1"}))], pilots, standing=2).cancel) == {"a", "b"}
    assert run(cluster, forecast, [demand()], pilots, standing=2, left_alone=frozenset({"n7"})).cancel == ("a", "b")


def test_nobody_stands_by_while_a_primary_job_takes_nodes_from_pilots() -> None:
    cluster, pilots = look(busy("n1"), busy("n2")), [pilot("n1"), waiting("a")]
    leaving = Pilot(uuid="p-n2", owner="me", node="n2", running=True, preempted=True)
    assert run(cluster, holes("n1", held="n1"), [demand()], [*pilots, leaving], standing=2).cancel == ("a",)
    assert run(cluster, holes("n1", held="n1", n1=59.0), [demand()], pilots, standing=2).cancel == ("a",)
    assert run(cluster, holes("n1", held="n1", n1=61.0), [demand()], pilots, standing=1).cancel == ()


def test_an_aimed_pilot_goes_when_a_standing_one_has_its_node() -> None:
    came_first = Pilot(uuid="s", owner="me", node="n1", running=True)
    decision = run(look(busy("n1")), holes("n1", held="n1"), [demand()], [pilot("n1", running=False), came_first])
    assert (decision.cancel, decision.nodes) == (("p-n1",), {"t": {"n1"}})


def test_no_more_is_submitted_than_the_limits_leave_and_nothing_where_pilots_die() -> None:
    cluster, forecast = look(*idle("n1", "n2", "n3")), holes("n1", "n2", "n3")
    assert len(run(cluster, forecast, [demand()], [], submissions=2).submit) == 2
    assert run(cluster, forecast, [demand()], [], submissions=0, standing=2).submit == ()
    decision = run(cluster, forecast, [demand()], [], left_alone=frozenset({"n2"}), standing=2)
    assert [each.node for each in decision.submit] == ["n1", "n3"]


def test_a_node_that_leaves_soon_is_not_grown_onto_where_its_life_counts() -> None:
    three = [pilot("n1"), pilot("n2"), pilot("n3")]
    grower = demand(stall_seconds=5.0, nodes=frozenset({"n1", "n2"}))
    cluster, forecast = look(busy("n1"), busy("n2"), busy("n3")), holes("n1", "n2", "n3", held="n1 n2 n3", n1=300.0, n2=300.0, n3=8.0)
    assert run(cluster, forecast, [grower], three).nodes == {"t": {"n1", "n2", "n3"}}
    assert run(cluster, forecast, [grower], three, survival_aware=True).nodes == {"t": {"n1", "n2"}}
