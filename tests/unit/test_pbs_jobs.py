"""Jobs of PBS: where they run, when they end, what preemption does to them, arrays, pilots."""

from __future__ import annotations

import pytest

from commensald.cluster import Facts, Job, JobState, Snapshot
from commensald.ledger import PilotRecord
from commensald.reconcile import ours, overdue, requeued, seconds_left
from commensald.schedulers.pbs.arrays import ARRAY_JOBS
from commensald.schedulers.pbs.attributes import PILOT
from commensald.schedulers.pbs.jobs import Around, jobs
from commensald.schedulers.pbs.pilots import spent
from commensald.schedulers.pbs.queues import Queue
from commensald.schedulers.pbs.records import Reading, Record

NOW = 1_796_000_900.0
NOON = "Mon Nov 30 01:07:09 2026"
"""71 s ago."""
AGO = NOW - 71.0
UUID = "11111111-2222-3333-4444-555555555555"


def record(state: str = "R", **more: str) -> Record:
    placed = {"exec_vnode": "(v1:ncpus=4)", "stime": NOON, "mtime": NOON, "substate": "42"} if state in "RSE" else {}
    return {"Job_Owner": "us@srv", "job_state": state, "queue": "scavq", "Resource_List.walltime": "00:10:00", **placed, **more}


def read(records: dict[str, Record], around: Around | None = None) -> dict[str, Job]:
    return {each.id: each for each in jobs(Reading(records=records), around or Around(hosts={"v1": "n1", "v2": "n2"}), NOW)}


def queue(priority: int) -> Queue:
    return Queue(name="q", priority=priority, enabled=True, started=True, kill_delay_seconds=15.0)


def one(given: Record, around: Around | None = None) -> Job:
    return read({"1.srv": given}, around)["1.srv"]


def pilot(**more: str) -> Record:
    return record(**{f"Variable_List.{PILOT}": UUID, **more})


def test_vnodes_are_shown_as_hosts() -> None:
    wide = record(exec_vnode="(v1:ncpus=4+v2:ncpus=2)+(v2:ncpus=2)+(x:ncpus=1)")
    assert one(wide).nodes == ("n1", "n2", "x")
    assert one({**record(), "exec_vnode": "", "exec_host": "n7/0*4+n8/1"}).nodes == ("n7", "n8")


def test_the_end_is_start_and_walltime() -> None:
    found = one(record(**{"resources_used.walltime": "00:00:30"}))
    assert (found.start, found.end, found.time_limit) == (AGO, AGO + 600.0, 600.0)
    assert one({key: value for key, value in record().items() if not key.startswith("Resource")}).end is None


def test_a_job_that_was_suspended_meanwhile_ends_when_it_has_used_its_walltime() -> None:
    late = record(mtime="Mon Nov 30 01:08:00 2026", **{"Resource_List.walltime": "00:01:00", "resources_used.walltime": "00:00:20"})
    assert one(late).end == AGO + 51.0 + 40.0  # as of mtime it had 40 s left
    assert one(record(**{"Resource_List.walltime": "00:01:00"})).end == AGO + 60.0


@pytest.mark.parametrize("substate", ["60", "61", "62", "63"])
def test_a_running_job_that_is_rerun_was_told_to_end(substate: str) -> None:
    found = one(pilot(substate=substate), Around(queues={"scavq": queue(10)}))
    assert (found.state, found.preempted_at, found.end) == (JobState.RUNNING, AGO, AGO + 15.0)
    assert seconds_left(found, 15.0, AGO + 5.0) == 10.0
    assert overdue({UUID: found}, 15.0, NOW) == (UUID,)
    assert one(pilot()).preempted_at is None


def test_each_method_of_preemption_ends_a_pilot() -> None:
    running, requeued_job, deleted, suspended = pilot(), pilot(state="Q"), pilot(state="E"), pilot(state="S", substate="45")
    assert one(running).state is JobState.RUNNING
    assert one(requeued_job).state is JobState.PENDING  # R and C: the daemon deletes it
    assert one(deleted).state is JobState.COMPLETING  # D
    assert one(suspended).state is JobState.SUSPENDED  # S


def test_pilots_that_run_again_or_are_suspended_are_spent() -> None:
    records = {
        "1.srv": pilot(run_count="1"),
        "2.srv": pilot(run_count="2"),
        "3.srv": pilot(state="S"),
        "4.srv": record(run_count="3"),
        "5.srv": record("S"),
        "6.srv": pilot(run_count="2", Job_Owner="eve@srv"),
        "7.srv": pilot(state="Q", run_count="1"),
        "8.srv": pilot(state="Q"),
        "9.srv": pilot(state="E", run_count="2"),
    }
    found = read(records)
    assert spent(found.values(), records, "us") == ("2.srv", "3.srv", "7.srv")
    assert {name for name, each in found.items() if each.preempted_at is not None} == {"2.srv", "6.srv", "7.srv", "9.srv"}


def test_a_pilot_that_cannot_be_read_now_is_what_it_was() -> None:
    around = Around(hosts={"v1": "n1"}, before={"1.srv": pilot()})
    (found,) = jobs(Reading(records={}, unreadable=("1.srv",)), around, NOW)
    assert (found.state, found.pilot("us"), found.nodes) == (JobState.UNKNOWN, UUID, ("n1",))


def test_a_requeued_pilot_is_one_that_has_run_and_waits() -> None:
    found = read({"1.srv": pilot(state="Q", run_count="1")})
    facts = Facts(product="pbs", version="23")
    shown = ours(Snapshot(taken=NOW, nodes=(), jobs=tuple(found.values()), reservations=(), facts=facts), "us")
    kept = PilotRecord(uuid=UUID, owner="us", node="n1", job="1.srv", time_limit=None, submitted=AGO, started=AGO)
    assert requeued([kept], shown) == (UUID,)


def test_a_pilot_is_known_by_its_variable_on_our_own_account_only() -> None:
    assert one(pilot()).pilot("us") == UUID
    assert one(pilot(Job_Owner="eve@srv")).pilot("us") is None
    assert one(record()).pilot("us") is None


def test_the_schedulers_estimate_is_a_plan() -> None:
    waiting = record("Q", **{"estimated.start_time": "Mon Nov 30 01:17:09 2026", "estimated.exec_vnode": "(v1:ncpus=4)+(v2:ncpus=4)"})
    found = one(waiting)
    assert (found.start, found.planned_nodes, found.nodes) == (AGO + 600.0, ("n1", "n2"), ())
    assert one({**waiting, "estimated.start_time": "UNKNOWN"}).start is None
    assert one({**waiting, "estimated.start_time": "1796001429"}).start == AGO + 600.0


def test_a_job_that_waits_for_its_time_is_eligible_then() -> None:
    assert one(record("W", Execution_Time="Mon Nov 30 02:07:00 2026", etime=NOON)).eligible == 1796004420.0
    assert one(record("Q", etime=NOON)).eligible == AGO


def test_a_job_in_a_reservation_waits_for_that() -> None:
    assert one(record("Q", queue="R10"), Around(reserved=frozenset({"R10"}))).state is JobState.HELD
    assert one(record("R", queue="R10"), Around(reserved=frozenset({"R10"}))).state is JobState.RUNNING


@pytest.mark.parametrize(
    ("chunks", "cpus", "place", "hosts"),
    [
        (16, 16, "free", 1),
        (16, 16, "scatter:excl", 16),
        (16, 16, "pack", 1),
        (17, 17, "free", 2),
        (3, 30, "excl", 3),
        (4, 32, "free:shared", 2),
        (2, 64, "free", 2),
        (1, 1, "vscatter", 1),
    ],
)
def test_chunks_share_a_host_unless_they_are_scattered(chunks: int, cpus: int, place: str, hosts: int) -> None:
    asked = {"Resource_List.nodect": str(chunks), "Resource_List.ncpus": str(cpus), "Resource_List.place": place}
    assert one(record("Q", **asked), Around(host_cpus=16)).node_count == hosts
    assert one(record("R", **asked), Around(host_cpus=16)).node_count == 1  # it is there


def test_queues_outweigh_jobs() -> None:
    around = Around(queues={"express": queue(200), "scavq": queue(10)})
    low, high = record("Q", Priority="1023"), record("Q", queue="express", Priority="-1024")
    assert one(low, around).priority < one(high, around).priority


@pytest.mark.parametrize(
    "wrong",
    [
        {"job_state": "?"},
        {"stime": "yesterday"},
        {"Resource_List.walltime": "long"},
        {"exec_vnode": "(("},
        {"mtime": "x", "substate": "60"},
    ],
)
def test_a_job_that_cannot_be_read_is_present_and_ours(wrong: dict[str, str]) -> None:
    found = one({**pilot(), **wrong})
    assert (found.state, found.pilot("us")) == (JobState.UNKNOWN, UUID)
    assert found.nodes == (() if "exec_vnode" in wrong else ("n1",))


def test_an_unreadable_job_is_present() -> None:
    found = jobs(Reading(records={"1.srv": record()}, unreadable=("2.srv",)), Around(), NOW)
    assert [(each.id, each.state) for each in found] == [("1.srv", JobState.RUNNING), ("2.srv", JobState.UNKNOWN)]


def array(states: str, **whole: str) -> dict[str, Record]:
    estimate = {"estimated.start_time": "Mon Nov 30 01:17:09 2026", "estimated.exec_vnode": "(v1:ncpus=4)"}
    parts = {f"5[{index}].srv": record(state, **(estimate if state == "Q" else {})) for index, state in enumerate(states, 1)}
    return {"5[].srv": record("B", **whole), **parts}


def test_an_array_is_its_jobs_and_only_the_first_has_the_plan() -> None:
    found = read(array("RQQ"))
    assert [*found] == ["5[1].srv", "5[2].srv", "5[3].srv"]
    assert [each.start for each in found.values()] == [AGO, AGO + 600.0, None]
    assert found["5[3].srv"].planned_nodes == ()


def test_of_a_large_array_a_few_are_planned() -> None:
    assert len(read(array("R" + "Q" * 500))) == 1 + ARRAY_JOBS
    assert len(read(array("RR" + "Q" * 500, max_run_subjobs="5"))) == 2 + 3
    assert len(read(array("RR" + "Q" * 500, max_run_subjobs="2"))) == 2
