"""Planned closes, checked against small clusters worked out by hand. Times are seconds after NOW."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from commensald.cluster import Facts, Job, JobState, Node, NodeState, Reservation, Snapshot
from commensald.forecast import make_forecast
from commensald.forecast.claims import holders
from commensald.forecast.windows import Window

NOW = 1_000_000.0
OWNER = "harvester"


def running(job: str, nodes: str, end: float | None, **more: object) -> Job:
    names = tuple(nodes.split())
    ends = None if end is None else NOW + end
    plain = Job(id=job, name=job, owner="alice", state=JobState.RUNNING, node_count=len(names), nodes=names, start=NOW - 50, end=ends)
    return replace(plain, **more)


def pending(job: str, count: int, limit: float | None, priority: float = 1.0, **more: object) -> Job:
    plain = Job(id=job, name=job, owner="alice", state=JobState.PENDING, node_count=count, submitted=NOW - 1000)
    return replace(plain, **{"time_limit": limit, "priority": priority, **more})


def cluster(size: int, *jobs: Job, reservations: tuple[Reservation, ...] = (), flags: dict[str, str] | None = None) -> Snapshot:
    used = {name for job in jobs for name in job.nodes}
    nodes = (
        Node(
            name=name,
            state=NodeState.ALLOCATED if name in used else NodeState.IDLE,
            flags=frozenset((flags or {}).get(name, "").split()),
        )
        for name in (f"n{index}" for index in range(1, size + 1))
    )
    facts = Facts(product="hand", version="1", grace_seconds=30.0)
    return Snapshot(taken=NOW, nodes=tuple(nodes), jobs=jobs, reservations=reservations, facts=facts)


def windows(snapshot: Snapshot) -> dict[str, Window]:
    return {each.node: each for each in make_forecast(snapshot, OWNER, (), NOW).windows if each.open(NOW)}


def closes(snapshot: Snapshot) -> dict[str, tuple[float | None, str | None]]:
    return {name: (None if each.closes is None else each.closes - NOW, each.claimed_by) for name, each in windows(snapshot).items()}


def test_idle_nodes_without_a_queue_never_close() -> None:
    assert closes(cluster(3, running("1", "n2", 600))) == {"n1": (None, None), "n3": (None, None)}


def test_the_head_claims_idle_nodes_when_the_last_one_it_lacks_comes_free() -> None:
    snapshot = cluster(3, running("1", "n2", 600), pending("2", 3, 900))
    assert closes(snapshot) == {"n1": (600, "2"), "n3": (600, "2")}


def test_a_lower_job_is_backfilled_only_where_it_delays_nobody() -> None:
    """n1 and n2 are idle until job 2 takes all four at 600. Job 3 (500 s) could start now, so it is held; job 4 (700 s) comes after 2."""
    jobs = (running("1", "n3 n4", 600), pending("2", 4, 100, 9.0), pending("3", 1, 500, 5.0), pending("4", 1, 700, 4.0))
    assert closes(cluster(4, *jobs)) == {"n1": (600, "2"), "n2": (600, "2")}


def test_a_job_that_just_came_and_fits_now_claims_now() -> None:
    snapshot = cluster(2, pending("1", 1, 500, submitted=NOW - 5))
    assert closes(snapshot) == {"n1": (0, "1"), "n2": (None, None)}


def test_the_schedulers_own_start_and_nodes_win() -> None:
    snapshot = cluster(4, running("1", "n1", 100), pending("2", 2, 300, start=NOW + 450, planned_nodes=("n1", "n4")))
    assert closes(snapshot) == {"n2": (None, None), "n3": (None, None), "n4": (450, "2")}


def test_planned_nodes_are_kept_even_from_a_job_of_higher_priority() -> None:
    """Job 1 needs two nodes for long: n1 comes free again at 510, after job 2, n3 only at 600."""
    first = pending("1", 2, 10_000, 9.0, submitted=NOW - 5)
    snapshot = cluster(3, running("3", "n3", 600), first, pending("2", 1, 60, 1.0, start=NOW + 450, planned_nodes=("n1",)))
    assert closes(snapshot) == {"n1": (450, "2"), "n2": (510, "1")}


def test_a_planned_start_that_passed_long_ago_is_stale() -> None:
    assert closes(cluster(1, pending("1", 1, 60, start=NOW - 301, planned_nodes=("n1",)))) == {"n1": (None, None)}


def test_a_job_takes_idle_nodes_before_those_of_pilots() -> None:
    pilot = running("9", "n1", 3600, owner=OWNER, comment="commensal:p1")
    assert closes(cluster(2, pilot, pending("1", 1, 500, submitted=NOW - 5))) == {"n1": (None, None), "n2": (0, "1")}


def test_a_job_that_waits_for_a_pilot_to_leave_claims_its_nodes_now() -> None:
    pilot = running("9", "n1", 3600, owner=OWNER, comment="commensal:p1", preempted_at=NOW - 5)
    snapshot = cluster(3, pilot, pending("2", 2, 300, start=NOW - 5, planned_nodes=("n1", "n2")))
    assert closes(snapshot) == {"n2": (0, "2"), "n3": (None, None)}


@pytest.mark.parametrize("change", [{"preempted_at": NOW - 5}, {"state": JobState.COMPLETING}])
def test_the_node_of_a_leaving_pilot_is_neither_ours_nor_open(change: dict[str, object]) -> None:
    pilot = running("9", "n1", 3600, owner=OWNER, comment="commensal:p1", **change)
    seen = holders(cluster(2, pilot), OWNER, NOW)
    assert (seen.held, seen.open, seen.free_from["n1"]) == (frozenset(), {"n2"}, NOW + 30)


def test_held_jobs_claim_nothing() -> None:
    assert closes(cluster(1, pending("1", 1, 500, state=JobState.HELD, submitted=NOW))) == {"n1": (None, None)}


def test_our_pilots_are_no_claims_and_their_nodes_are_open() -> None:
    pilot = running("9", "n2", 3600, owner=OWNER, comment="commensal:p1")
    mine = pending("8", 1, 60, owner=OWNER, comment="commensal:p2", submitted=NOW)
    snapshot = cluster(3, running("1", "n3", 600), pilot, mine, pending("2", 3, 900))
    assert closes(snapshot) == {"n1": (600, "2"), "n2": (600, "2")}
    assert {name: each.held for name, each in windows(snapshot).items()} == {"n1": False, "n2": True}


def test_somebody_elses_job_with_our_tag_is_a_primary_job() -> None:
    assert closes(cluster(2, running("9", "n2", 3600, owner="mallory", comment="commensal:p1"))) == {"n1": (None, None)}


def test_an_overrunning_job_is_planned_to_end_in_five_minutes() -> None:
    assert closes(cluster(2, running("1", "n2", -40), pending("2", 2, 60))) == {"n1": (300, "2")}


def test_a_job_without_limit_never_gives_its_node_back() -> None:
    assert closes(cluster(2, running("1", "n2", None), pending("2", 2, 60))) == {"n1": (None, None)}


def test_reservations_close_nodes_and_push_jobs_away() -> None:
    """Job 2 needs both nodes for 500 s from 100 on; the reservation of n1 at 400 pushes it to 1000."""
    kept = Reservation(name="repair", nodes=frozenset({"n1"}), start=NOW + 400, end=NOW + 1000)
    snapshot = cluster(2, running("1", "n2", 100), pending("2", 2, 500), reservations=(kept,))
    assert closes(snapshot) == {"n1": (400, "repair")}
    later = {each.node: each for each in make_forecast(snapshot, OWNER, (), NOW).windows if not each.open(NOW)}
    assert (later["n2"].opens - NOW, later["n2"].closes, later["n2"].claimed_by) == (100, NOW + 1000, "2")


def test_a_node_reserved_before_its_job_ends_has_no_window_to_come() -> None:
    kept = Reservation(name="repair", nodes=frozenset({"n1"}), start=NOW + 50, end=NOW + 1000)
    assert make_forecast(cluster(1, running("1", "n1", 100), reservations=(kept,)), OWNER, (), NOW).windows == ()


def test_draining_nodes_have_no_window_and_carry_no_job() -> None:
    snapshot = cluster(3, running("1", "n3", 600), pending("2", 3, 60), flags={"n2": "DRAIN"})
    assert closes(snapshot) == {"n1": (None, None)}


@pytest.mark.parametrize(("partition", "expected"), [("a", (None, None)), ("a,b", (200.0, "2"))])
def test_jobs_keep_to_their_partitions(partition: str, expected: tuple[float | None, str | None]) -> None:
    whole = cluster(2, running("1", "n1", 200), pending("2", 2, 60, partition=partition))
    split = tuple(Node(name=each.name, state=each.state, partitions=frozenset({"a" if each.name == "n1" else "b"})) for each in whole.nodes)
    snapshot = Snapshot(taken=NOW, nodes=split, jobs=whole.jobs, reservations=(), facts=whole.facts)
    assert closes(snapshot) == {"n2": expected}
