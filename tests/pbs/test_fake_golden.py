"""The fake's answers against captures of a real OpenPBS 23.06: the same names in the same order, the same kinds, the same layout."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from fakepbs import layout
from stand import Stand

CAPTURES = Path(__file__).parents[1] / "fixtures" / "pbs"
JSON = sorted(path.name for path in CAPTURES.glob("*.json"))


def capture(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CAPTURES / name).read_text())
    return found


def shape(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Names and kinds. What a submitter's environment or a site's resources decide is left out."""
    if isinstance(value, dict):
        return [(name, shape(each)) for name, each in value.items() if name not in ("depend", "Stageout_status")]
    return [shape(each) for each in value[:1]] if isinstance(value, list) else type(value).__name__


@pytest.fixture
def stand() -> Stand:
    """Everything that the captured site had in its queue."""
    stand = Stand()
    stand.qsub("-N", "scav", "-q", "scavq", "-l", "select=2:ncpus=4", "-l", "place=scatter", "-l", "walltime=00:20:00", "-j", "oe")
    stand.turn(24.0)
    return stand


@pytest.mark.parametrize("name", JSON)
def test_json_is_laid_out_as_pbs_does(name: str) -> None:
    assert layout.as_json(capture(name)) == (CAPTURES / name).read_text()


def test_text_is_folded_as_pbs_does() -> None:
    jobs = capture("qstat_f.json")["Jobs"]
    text = "".join(layout.as_text(f"Job Id: {name}", table) + "\n" for name, table in jobs.items())
    assert text == (CAPTURES / "qstat_f.txt").read_text()


@pytest.mark.parametrize(
    ("captured", "id_there", "words"),
    [
        ("qstat_f.json", "3.pbs-s", ("-N", "p1", "-l", "select=1:ncpus=2", "-l", "walltime=5:00", "-o", "/dev/null", "-j", "oe")),
        ("qstat_f.json", "6.pbs-s", ("-h", "-N", "held", "-l", "walltime=1:00")),
        ("qstat_f.json", "9[].pbs-s", ("-N", "arr", "-J", "1-6", "-l", "walltime=00:02:00", "-o", "/dev/null", "-j", "oe")),
    ],
)
def test_waiting_jobs_look_the_same(captured: str, id_there: str, words: tuple[str, ...]) -> None:
    stand = Stand()
    stand.ask("pbsnodes", "-o", "pbs-m1", "pbs-m2")
    job = stand.qsub(*words)
    ours, theirs = stand.jobs()[job], capture(captured)["Jobs"][id_there]
    assert shape(ours) == shape(theirs)
    for name in ("job_state", "substate", "Resource_List", "Hold_Types", "Join_Path", "schedselect"):
        assert ours[name] == theirs[name]


def test_a_job_that_is_preempted_by_requeue_looks_the_same(stand: Stand) -> None:
    scav = "0.pbs-s"
    first = stand.qsub("-N", "prim", "-q", "primaryq", "-l", "select=1:ncpus=2", "-l", "walltime=00:01:00")
    stand.ended(scav, 271)
    requeued = stand.jobs()[scav]
    assert shape(requeued) == shape(capture("qstat_f2.json")["Jobs"][scav])
    assert (requeued["job_state"], requeued["substate"], requeued["run_count"]) == ("Q", 10, 1)
    stand.ended(first)
    stand.turn(24.0)
    stand.qsub("-N", "p1", "-l", "select=1:ncpus=2", "-l", "walltime=00:05:00")
    again = stand.jobs()[scav]
    theirs = capture("qstat_f.json")["Jobs"][scav]
    assert shape(again) == shape(theirs)
    for name in ("job_state", "substate", "run_count", "Resource_List", "exec_host", "exec_vnode"):
        assert again[name] == theirs[name]


def test_running_and_finished_jobs_look_the_same(stand: Stand) -> None:
    stand = Stand()
    job = stand.qsub("-N", "p1", "-l", "select=1:ncpus=2", "-l", "walltime=00:05:00", "-o", "/dev/null", "-j", "oe")
    assert shape(stand.jobs()[job]) == shape(capture("qstat_f2.json")["Jobs"]["3.pbs-s"])
    stand.ended(job)
    assert stand.jobs() == {}
    assert shape(stand.jobs("-x")[job]) == shape(capture("qstat_xf.json")["Jobs"]["2.pbs-s"])
    held = stand.qsub("-h", "-N", "prim")
    stand.ask("qdel", held)
    gone = stand.jobs("-x")[held]
    assert (gone["job_state"], gone["substate"]) == ("F", 91)


def test_subjobs_look_the_same() -> None:
    stand = Stand()
    array = stand.qsub("-N", "arr", "-J", "1-6", "-l", "walltime=00:02:00", "-o", "/dev/null", "-j", "oe")
    stand.ended("0[1].pbs-s")
    stand.ended("0[2].pbs-s")
    ours, theirs = stand.jobs("-t"), capture("qstat_tf2.json")["Jobs"]
    assert "(pbs-m1:ncpus=1)" in ours["0[5].pbs-s"].pop("estimated")["exec_vnode"]
    assert shape(ours[array]) == shape({name: each for name, each in theirs["9[].pbs-s"].items() if name != "Exit_status"})
    assert ours[array]["array_state_count"] == theirs["9[].pbs-s"]["array_state_count"]
    assert ours[array]["array_indices_remaining"] == theirs["9[].pbs-s"]["array_indices_remaining"]
    for mine, other in (("0[1].pbs-s", "9[1].pbs-s"), ("0[3].pbs-s", "9[3].pbs-s"), ("0[5].pbs-s", "9[5].pbs-s")):
        captured = {name: each for name, each in theirs[other].items() if ours[mine]["job_state"] != "Q" or name != "Exit_status"}
        assert shape(ours[mine]) == shape(captured), mine
        assert (ours[mine]["job_state"], ours[mine]["substate"]) == (theirs[other]["job_state"], theirs[other]["substate"])


def test_nodes_queues_server_and_scheduler_look_the_same(stand: Stand) -> None:
    stand.ask("pbsnodes", "-o", "-C", "lab: offline", "pbs-m2")
    ours, theirs = json.loads(stand.ask("pbsnodes", "-a", "-F", "json")), capture("pbsnodes_a.json")
    ours["nodes"]["pbs-m2"].pop("last_used_time")
    assert shape(ours) == shape(theirs)
    assert ours["nodes"]["pbs-m2"]["state"] == "offline,job-exclusive"
    text = stand.ask("pbsnodes", "-a").splitlines()
    names = [line.partition(" = ")[0] for line in text]
    assert names[:-3] == [line.partition(" = ")[0] for line in (CAPTURES / "pbsnodes_a.txt").read_text().splitlines()][: len(names) - 3]
    queues = json.loads(stand.ask("qstat", "-Q", "-f", "-F", "json"))["Queue"]
    assert shape(queues["scavq"]) == shape(capture("qstat_Q.json")["Queue"]["scavq"])
    assert shape(queues["workq"]) == shape(capture("qstat_Q.json")["Queue"]["workq"])
    assert shape(json.loads(stand.ask("qstat", "-B", "-f", "-F", "json"))) == shape(capture("qstat_B.json"))
    listed = [line.partition(" = ")[0] for line in stand.ask("qmgr", "-c", "list sched").splitlines()]
    assert listed == [line.partition(" = ")[0] for line in (CAPTURES / "list_sched.txt").read_text().splitlines()]


def test_reservations_look_the_same(stand: Stand) -> None:
    begins, ends = (time.strftime("%Y%m%d%H%M.%S", time.localtime(stand.now + after)) for after in (2400, 4200))
    stand.ask("pbs_rsub", "-R", begins, "-E", ends, "--hosts", "pbs-m1")
    ours, theirs = stand.ask("pbs_rstat", "-F").splitlines(), (CAPTURES / "pbs_rstat_F2.txt").read_text().splitlines()
    assert [line.partition(" = ")[0] for line in ours[1:]] == [line.partition(" = ")[0] for line in theirs[1:]]
    assert ours[0] == "Resv ID: M1.pbs-s"
