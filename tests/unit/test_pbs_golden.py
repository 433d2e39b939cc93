"""Captures of OpenPBS: what is read from JSON stands in the text too, and both mean what the server meant."""

from __future__ import annotations

import msgspec
import pytest
from pbs_captures import EARLY, JOBS_AS_JSON, LATE, by_id, capture, read, section, shown_queues, snapshot

from commensald.cluster import JobState, NodeState, Snapshot
from commensald.forecast import Window, make_forecast
from commensald.schedulers.pbs import settings, text
from commensald.schedulers.pbs.jobs import Around, jobs
from commensald.schedulers.pbs.queues import of_pilots

NOON = 1796000837.0


def test_text_and_json_give_the_same_jobs() -> None:
    assert text.jobs(capture("qstat_f.txt")).records == read("qstat_f.json").records


@pytest.mark.parametrize("name", JOBS_AS_JSON)
def test_every_job_of_a_capture_is_understood(name: str) -> None:
    reading = read(name)
    assert reading.whole
    assert not reading.repaired
    assert not reading.unreadable
    assert len(reading.records) == capture(name).count('"job_state":')
    assert JobState.UNKNOWN not in {each.state for each in jobs(reading, Around(), NOON)}


def test_a_preempted_job_runs_on_and_was_told_so() -> None:
    scav = by_id(snapshot(EARLY))["0.pbs-s"]
    assert (scav.name, scav.owner, scav.partition, scav.state, scav.nodes) == (
        "scav",
        "scav",
        "scavq",
        JobState.RUNNING,
        ("pbs-m1", "pbs-m2"),
    )
    assert scav.preempted_at == 1796000829.0  # "Job Rerun at request of Scheduler" in the server's log
    assert (scav.start, scav.end, scav.time_limit) == (1796000805.0, 1796000844.0, 1200.0)  # to be killed after kill_delay, 15 s


def test_a_requeued_job_waits_and_has_no_start() -> None:
    scav = by_id(snapshot(LATE))["0.pbs-s"]
    assert (scav.state, scav.nodes, scav.start, scav.end, scav.preempted_at) == (JobState.PENDING, (), None, None, None)


def test_primary_jobs_of_both_captures() -> None:
    early, late = by_id(snapshot(EARLY)), by_id(snapshot(LATE))
    assert {early[name].state for name in ("6.pbs-s", "8.pbs-s")} == {JobState.HELD}
    assert early["11.pbs-s"].eligible == 1796004420.0  # qsub -a 0207
    assert (early["7.pbs-s"].node_count, early["7.pbs-s"].time_limit) == (2, 600.0)
    run = late["3.pbs-s"]
    assert (run.state, run.nodes, run.start, run.end) == (JobState.RUNNING, ("pbs-m1",), 1796000848.0, 1796001148.0)


def test_arrays_are_their_jobs() -> None:
    early, late = by_id(snapshot(EARLY)), by_id(snapshot(LATE))
    assert [name for name in early if name.startswith("9[")] == [f"9[{index}].pbs-s" for index in range(1, 7)]
    assert [late[f"9[{index}].pbs-s"].state.name for index in range(1, 7)] == ["ENDED", "ENDED", "RUNNING", "RUNNING", "PENDING", "PENDING"]
    assert late["9[5].pbs-s"].start is None  # its record shows when the array began
    alone = {each.id for each in jobs(read("qstat_f.json"), Around(), NOON)}
    assert "9[].pbs-s" in alone  # without -t an array is all there is


def test_history_has_ended() -> None:
    found = {each.id: each for each in jobs(read("qstat_xf.json"), Around(), NOON)}
    assert [found[name].state for name in ("1.pbs-s", "2.pbs-s")] == [JobState.ENDED, JobState.ENDED]
    assert found["2.pbs-s"].nodes == ()


def test_nodes_of_both_captures() -> None:
    first, second = snapshot(EARLY).nodes
    assert (first.name, first.state, first.flags, first.cpus, first.cpus_used) == ("pbs-m1", NodeState.ALLOCATED, frozenset(), 4, 4)
    assert (second.name, second.state, second.flags, second.memory_mib) == ("pbs-m2", NodeState.ALLOCATED, {"DRAIN"}, 24105)
    assert [each.reservation for each in snapshot(LATE).nodes] == ["R10.pbs-s", None]


def test_a_reservation_holds_nodes_once_it_is_confirmed() -> None:
    assert snapshot(EARLY).reservations == ()
    (held,) = snapshot(LATE).reservations
    assert (held.name, held.nodes, held.start, held.end) == ("R10.pbs-s", {"pbs-m1"}, 1796003220.0, 1796005020.0)


def test_queues() -> None:
    found = shown_queues()
    assert {name: each.priority for name, each in found.items()} == {"workq": 0, "primaryq": 200, "scavq": 10, "R10": 0}
    assert (found["scavq"].kill_delay_seconds, found["primaryq"].kill_delay_seconds) == (15.0, 10.0)
    assert not found["R10"].started
    server = section("qstat_B.json", "Server")["pbs-s"]
    assert of_pilots(found, None, server) == found["primaryq"]
    assert of_pilots(found, "scavq", server) == found["scavq"]
    assert of_pilots(found, "nowhere", server) is None


def test_text_and_json_give_the_same_queues_and_server() -> None:
    for name, shown in section("qstat_Q.json", "Queue").items():
        part = capture("qstat_Qf.txt").partition(f"Queue: {name}\n")[2].partition("\n\n")[0]
        assert text.attributes(part) == {key: value.strip() for key, value in shown.items()}
    server = section("qstat_B.json", "Server")["pbs-s"]
    assert text.attributes(capture("qstat_Bf.txt").partition("\n")[2]) == {key: value.strip() for key, value in server.items()}


def test_facts() -> None:
    facts = snapshot(EARLY).facts
    assert (facts.product, facts.version, facts.grace_seconds, facts.whole_minutes) == ("pbs", "23.06.06", 15.0, False)
    assert facts.extra["preempt_order"] == "R"
    assert facts.extra["backfill_depth"] == "1"


@pytest.mark.parametrize(
    ("order", "grace"), [("R", 15.0), ("D", 15.0), ("CR", 15.0), ("SCR", 0.0), ("R 80 D", 15.0), ("R 80 SC 50 R", 0.0)]
)
def test_grace_is_the_queues_kill_delay_unless_a_pilot_may_be_suspended(order: str, grace: float) -> None:
    assert settings.grace_seconds({"preempt_order": order}, shown_queues()["scavq"]) == grace


def windows(shown: Snapshot) -> dict[str, Window]:
    return {each.node: each for each in make_forecast(shown, "scav", [], shown.taken).windows}


def without(shown: Snapshot, *ids: str) -> Snapshot:
    """As if these jobs had ended."""
    left = tuple(each for each in shown.jobs if each.id not in ids)
    busy = {name for each in left for name in each.nodes}
    freed = tuple(
        each if each.name in busy else msgspec.structs.replace(each, state=NodeState.IDLE, cpus_used=0, flags=frozenset())
        for each in shown.nodes
    )
    return msgspec.structs.replace(shown, jobs=left, nodes=freed)


def test_windows_of_the_captures() -> None:
    assert windows(snapshot(EARLY)) == {}  # both nodes are wanted by the primary jobs that preempt
    assert windows(snapshot(LATE)) == {}  # and then by the job that wants both


def test_a_node_that_has_come_free_is_a_window_until_the_wide_job() -> None:
    late = without(snapshot(LATE), "5.pbs-s", *(f"9[{index}].pbs-s" for index in range(1, 7)))
    window = windows(late)["pbs-m2"]
    assert window.open(late.taken)
    assert window.closes == late.taken + 268.0  # job 4 ends on the other node
    assert window.claimed_by == "7.pbs-s"


def test_a_window_before_a_reservation() -> None:
    late = snapshot(LATE)
    idle = without(late, *(each.id for each in late.jobs))
    found = windows(idle)
    assert (found["pbs-m1"].closes, found["pbs-m1"].claimed_by) == (1796003220.0, "R10.pbs-s")
    assert found["pbs-m2"].closes is None
