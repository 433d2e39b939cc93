"""The embedded cluster's core: one rule a test, on a clock we move by hand."""

from __future__ import annotations

import pytest

from commensald.cluster import JobState, NodeState, Reservation
from commensald.schedulers.local.core import Core
from commensald.schedulers.local.jobs import Assign, Drop, JobSpec, Kill, Policy, Reason, RefusedError, Signal, Start
from commensald.schedulers.local.view import snapshot

NODES = ("n1", "n2", "n3", "n4")


def cluster(**settings: object) -> Core:
    """Four nodes."""
    return Core(NODES, Policy(**settings))  # type: ignore[arg-type]


def job(name: str, count: int = 1, limit: float | None = None, *, priority: float = 0.0, tier: int = 1) -> JobSpec:
    """A primary job."""
    return JobSpec(id=name, name=name, owner="u", node_count=count, time_limit=limit, priority=priority, tier=tier)


def pilot(name: str, node: str | None = None, limit: float | None = None) -> JobSpec:
    """A pilot."""
    return JobSpec(id=name, name="commensal", owner="me", pilot=f"uuid-{name}", node=node, time_limit=limit)


def submit(core: Core, now: float, *specs: JobSpec) -> list[object]:
    """Submit and advance."""
    for spec in specs:
        core.submit(spec, now)
    return list(core.advance(now))


def starts(actions: list[object]) -> dict[str, tuple[str, ...]]:
    """Job -> nodes of those that start."""
    return {action.job: action.nodes for action in actions if isinstance(action, Start)}


def test_order_is_tier_then_priority_then_submission() -> None:
    core = cluster()
    submit(core, 0.0, job("all", 4, 10.0))
    submit(core, 1.0, job("late", 4, 10.0), job("urgent", 4, 10.0, priority=5.0), job("upper", 4, 10.0, tier=2))
    begun = []
    for now in (10.0, 20.0, 30.0, 40.0):
        core.ended(next(name for name, entry in core.jobs.items() if entry.started is not None))
        begun += starts(list(core.advance(now)))
    assert begun == ["upper", "urgent", "late"]


def test_backfill_fits_before_the_head_or_beside_it() -> None:
    core = cluster()
    submit(core, 0.0, job("long", 2, 100.0))
    actions = submit(core, 0.0, job("head", 3, 50.0), job("too long", 2, 101.0), job("short", 1, 100.0), job("beside", 1, 900.0))
    assert core.head is not None
    assert core.head.start == 100.0
    assert set(starts(actions)) == {"short", "beside"}


def test_planned_nodes_show_as_planned_and_pending_jobs_in_turn() -> None:
    core = cluster()
    submit(core, 0.0, job("long", 2, 100.0), job("head", 3, 50.0), job("second", 4, 10.0))
    seen = snapshot(core, 5.0, "1")
    jobs = {j.id: j for j in seen.jobs}
    assert (jobs["head"].state, jobs["head"].start, jobs["head"].end) == (JobState.PENDING, 100.0, 150.0)
    assert (jobs["second"].start, set(jobs["second"].planned_nodes)) == (150.0, set(NODES))
    planned = {n.name for n in seen.nodes if "PLANNED" in n.flags}
    assert planned == set(jobs["head"].planned_nodes) - {"n1", "n2"}
    assert len(planned) == 1


def test_pilots_are_invisible_to_the_plan_and_leave_at_once() -> None:
    core = cluster(grace_seconds=30.0)
    assert starts(submit(core, 0.0, pilot("a", "n2"), pilot("b"))) == {"a": ("n2",), "b": ("n1",)}
    actions = submit(core, 10.0, job("wide", 4, 60.0))
    assert actions == [
        Assign(job="wide", nodes=NODES),
        Signal(job="b", signal="TERM", reason=Reason.PREEMPT),
        Signal(job="a", signal="TERM", reason=Reason.PREEMPT),
    ]
    shown = {j.id: j for j in snapshot(core, 11.0, "1").jobs}
    assert (shown["a"].preempted_at, shown["a"].end, shown["a"].state) == (10.0, 40.0, JobState.RUNNING)
    assert (shown["wide"].state, shown["wide"].planned_nodes) == (JobState.PENDING, NODES)
    core.ended("a")
    assert core.advance(12.0) == []
    assert core.next_event(12.0) == 40.0
    assert core.advance(40.0) == [Kill(job="b", reason=Reason.GRACE)]
    core.ended("b")
    assert core.advance(40.1) == [Start(job="wide", nodes=NODES, end=100.1)]


def test_usr1_begins_grace_where_the_site_says_so() -> None:
    core = cluster(grace_seconds=30.0, preempt_signal="USR1", preempt_kill_wait_seconds=10.0)
    submit(core, 0.0, pilot("a", "n1"))
    actions = submit(core, 0.0, job("wide", 4, 60.0))
    assert Signal(job="a", signal="USR1", reason=Reason.PREEMPT) in actions
    assert core.advance(30.0) == [Signal(job="a", signal="TERM", reason=Reason.GRACE)]
    assert core.next_event(30.0) == 40.0
    assert core.advance(40.0) == [Kill(job="a", reason=Reason.GRACE)]


def test_a_limit_inside_grace_kills_at_its_own_time() -> None:
    core = cluster(grace_seconds=30.0, kill_wait_seconds=10.0)
    submit(core, 0.0, pilot("a", "n1", 12.0))
    submit(core, 10.0, job("wide", 4, 60.0))
    assert core.advance(21.9) == []
    assert core.advance(22.0) == [Kill(job="a", reason=Reason.GRACE)]


def test_limit_is_term_then_kill_and_whole_minutes_where_slurm_like() -> None:
    for slurm_like, end in ((False, 61.0), (True, 120.0)):
        core = cluster(kill_wait_seconds=10.0, slurm_like=slurm_like)
        submit(core, 0.0, job("j", 1, 61.0))
        assert core.next_event(0.0) == end
        assert core.advance(end - 0.1) == []
        assert core.advance(end) == [Signal(job="j", signal="TERM", reason=Reason.LIMIT)]
        assert core.next_event(end) == end + 10.0
        assert core.advance(end + 10.0) == [Kill(job="j", reason=Reason.LIMIT)]


def test_slurm_like_pilot_does_not_overlap_a_planned_start() -> None:
    for slurm_like in (False, True):
        core = cluster(slurm_like=slurm_like)
        submit(core, 0.0, job("long", 2, 120.0), job("head", 4, 60.0))
        begun = starts(submit(core, 1.0, pilot("overlaps", None, 120.0), pilot("fits", None, 60.0)))
        assert set(begun) == ({"fits"} if slurm_like else {"overlaps", "fits"})


def test_reservation_shuts_nodes_and_claims_them_from_pilots() -> None:
    core = cluster()
    core.reserve(Reservation(name="maint", nodes=frozenset({"n1", "n2"}), start=50.0, end=100.0))
    assert starts(submit(core, 0.0, job("fits", 1, 50.0), job("crosses", 2, 51.0))) == {"fits": ("n1",), "crosses": ("n3", "n4")}
    assert starts(submit(core, 1.0, pilot("p"))) == {"p": ("n2",)}
    core.ended("fits")
    assert core.next_event(1.0) == 50.0
    assert Signal(job="p", signal="TERM", reason=Reason.PREEMPT) in core.advance(50.0)
    assert snapshot(core, 60.0, "1").nodes[0].reservation == "maint"
    core.ended("p")
    assert starts(submit(core, 60.0, pilot("q", "n2"))) == {}
    assert starts(list(core.advance(100.0))) == {"q": ("n2",)}


def test_node_down_kills_and_returns_waiting_jobs_to_the_queue() -> None:
    core = cluster()
    submit(core, 0.0, pilot("p", "n1"))
    submit(core, 1.0, job("wide", 4, 10.0))
    core.set_node("n2", up=False)
    assert core.advance(2.0) == []
    assert core.jobs["wide"].assigned is None
    assert snapshot(core, 2.0, "1").nodes[1].state is NodeState.DOWN
    core.ended("p")
    core.set_node("n2", up=True)
    assert starts(list(core.advance(3.0))) == {"wide": NODES}
    core.set_node("n4", up=False)
    assert core.advance(4.0) == [Kill(job="wide", reason=Reason.NODE_FAIL)]


def test_cancel_pending_assigned_and_running() -> None:
    core = cluster(kill_wait_seconds=5.0)
    submit(core, 0.0, pilot("p", "n1"))
    submit(core, 1.0, job("assigned", 4, 10.0), job("pending", 4, 10.0))
    for name in ("assigned", "pending", "p", "gone"):
        core.cancel(name, 2.0)
    assert core.advance(2.0) == [Drop(job="assigned", reason=Reason.CANCEL), Drop(job="pending", reason=Reason.CANCEL)]
    assert not core.primary_on
    core.ended("p")
    submit(core, 3.0, job("running", 1, 50.0))
    core.cancel("running", 4.0)
    assert core.advance(4.0) == [Signal(job="running", signal="TERM", reason=Reason.CANCEL)]
    assert core.advance(9.0) == [Kill(job="running", reason=Reason.CANCEL)]


def test_cancel_in_grace_shortens_it_and_signals_no_more() -> None:
    core = cluster(grace_seconds=30.0, kill_wait_seconds=5.0)
    submit(core, 0.0, pilot("p", "n1"))
    submit(core, 1.0, job("wide", 4, 10.0))
    core.cancel("p", 2.0)
    assert core.advance(2.0) == []
    assert core.next_event(2.0) == 7.0


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (job("j", 5), "asks for 5 nodes, the cluster has 4"),
        (job("j", 0), "asks for 0 nodes"),
        (pilot("j", "n9"), "asks for node 'n9'"),
        (job("j", 1, 0.0), "time limit of 0.0"),
    ],
)
def test_what_could_never_run_is_refused(spec: JobSpec, says: str) -> None:
    with pytest.raises(RefusedError, match=says):
        cluster().submit(spec, 0.0)
