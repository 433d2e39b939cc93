"""The fake keeps PBS's rules: preemption in each order, requeueing, suspension, shrink-to-fit, arrays, and what commands complain of."""

from __future__ import annotations

import json

import pytest
from stand import Stand


def pilot(stand: Stand, *words: str) -> str:
    return stand.qsub("-q", "scavq", "-l", "select=2:ncpus=4", "-l", "walltime=10:00", *words)


def primary(stand: Stand, *words: str) -> str:
    return stand.qsub("-q", "primaryq", "-l", "select=1:ncpus=4", "-l", "walltime=1:00", *words)


def state(stand: Stand, job: str) -> tuple[str, int, int | None]:
    found = stand.jobs("-x")[job]
    return found["job_state"], found["substate"], found.get("run_count")


def test_preempted_by_requeue() -> None:
    stand = Stand("R")
    scav = pilot(stand)
    prim = primary(stand)
    assert stand.orders[-1] == f"term {scav}"
    assert state(stand, scav) == ("R", 60, 1)
    assert state(stand, prim)[0] == "Q"
    stand.turn(14.9)
    assert stand.orders[-1] == f"term {scav}"
    stand.turn(0.1)
    assert stand.orders[-1] == f"kill {scav}"
    stand.ended(scav, 265)
    assert stand.orders[-1] == f"run {prim}"
    assert state(stand, scav) == ("Q", 10, 1)
    stand.ended(prim)
    assert state(stand, scav) == ("R", 42, 2)


def test_preempted_by_suspension_and_resumed() -> None:
    stand = Stand("SR")
    scav = pilot(stand)
    prim = primary(stand)
    assert stand.orders[-2:] == [f"stop {scav}", f"run {prim}"]
    assert state(stand, scav) == ("S", 45, 1)
    late = pilot(stand)
    stand.ended(prim)
    assert stand.orders[-1] == f"resume {scav}"
    assert (state(stand, scav), state(stand, late)) == (("R", 42, 1), ("Q", 10, None))


def test_a_suspended_job_can_be_deleted() -> None:
    stand = Stand("S")
    scav = pilot(stand)
    primary(stand)
    stand.ask("qdel", scav)
    assert stand.orders[-1] == f"kill {scav}"
    stand.ended(scav, 265)
    assert state(stand, scav) == ("F", 91, 1)


@pytest.mark.parametrize(
    ("order", "options", "verb", "after"),
    [("D", (), "term", "F"), ("CR", (), "kill", "Q"), ("CR", ("-c", "n"), "term", "Q"), ("RD", ("-r", "n"), "term", "F")],
)
def test_preempted_in_other_ways(order: str, options: tuple[str, ...], verb: str, after: str) -> None:
    stand = Stand(order)
    scav = pilot(stand, *options)
    primary(stand)
    assert stand.orders[-1] == f"{verb} {scav}"
    stand.ended(scav, 271)
    assert state(stand, scav)[0] == after


def test_a_job_that_cannot_be_requeued_blocks_an_express_job() -> None:
    stand = Stand("R")
    scav = pilot(stand, "-r", "n")
    prim = primary(stand)
    assert (state(stand, scav)[0], state(stand, prim)[0]) == ("R", "Q")
    assert not [order for order in stand.orders if order.startswith("term")]


def test_nobody_else_is_considered_while_a_preempted_job_leaves() -> None:
    stand = Stand()
    scav = stand.qsub("-q", "scavq", "-l", "select=1:host=pbs-m1:ncpus=4", "-l", "walltime=10:00")
    prim = stand.qsub("-q", "primaryq", "-l", "select=1:host=pbs-m1:ncpus=4", "-l", "walltime=1:00")
    late = primary(stand)
    assert [state(stand, job)[0] for job in (scav, prim, late)] == ["R", "Q", "Q"]
    stand.ended(scav, 271)
    assert [state(stand, job)[0] for job in (scav, prim, late)] == ["Q", "R", "R"]


def test_a_free_node_is_taken_before_anybody_is_preempted() -> None:
    stand = Stand()
    stand.qsub("-q", "scavq", "-l", "select=1:ncpus=4", "-l", "walltime=10:00")
    prim = primary(stand)
    assert state(stand, prim)[0] == "R"


def test_shrink_to_fit_ends_before_the_planned_start() -> None:
    stand = Stand()
    primary(stand)
    big = stand.qsub("-l", "select=2:ncpus=4", "-l", "walltime=1:00")
    estimate = stand.jobs()[big]["estimated"]
    assert estimate["exec_vnode"] == "(pbs-m1:ncpus=4)+(pbs-m2:ncpus=4)"
    shrunk = stand.qsub("-q", "scavq", "-l", "select=1:ncpus=4", "-l", "min_walltime=20,max_walltime=10:00")
    too_long = stand.qsub("-q", "scavq", "-l", "select=1:ncpus=4", "-l", "walltime=10:00")
    assert stand.jobs()[shrunk]["Resource_List"]["walltime"] == "00:01:00"
    assert state(stand, too_long)[0] == "Q"


def test_a_limit_is_kept() -> None:
    stand = Stand()
    job = pilot(stand)
    stand.turn(600.0)
    assert stand.orders[-1] == f"term {job}"
    stand.turn(15.0)
    assert stand.orders[-1] == f"kill {job}"


def test_hosts_are_respected() -> None:
    stand = Stand()
    job = stand.qsub("-l", "select=1:host=pbs-m2:ncpus=4")
    assert stand.jobs()[job]["exec_host"] == "pbs-m2/0*4"
    assert stand.reply("qsub", "-l", "select=1:host=pbs-m9").code != 0


def test_directives_and_variables_are_read() -> None:
    stand = Stand()
    script = "#!/bin/sh\n#PBS -N inside -q scavq\n#PBS -l walltime=2:00\n\ntrue\n#PBS -N late\n"
    job = stand.reply("qsub", "-N", "line", "-v", "FOO=005,BAR='a,b',HOME", script=script).out.strip()
    found = stand.ask("qstat", "-f", "-F", "json", job)
    assert '"FOO":\t005,' in found  # openpbs#1255
    with pytest.raises(json.JSONDecodeError):
        json.loads(found)
    text = stand.ask("qstat", "-f", job)
    assert "Job_Name = line\n" in text
    assert "queue = scavq\n" in text
    assert "BAR=a\\,b" in text.replace("\n\t", "")


@pytest.mark.parametrize(
    ("words", "errors", "code"),
    [
        (("qstat", "9"), "qstat: Unknown Job Id 9.pbs-s\n", 153),
        (("qdel", "9"), "qdel: Unknown Job Id 9.pbs-s\n", 153),
        (("qstat", "0"), "qstat: 0.pbs-s Job has finished, use -x or -H to obtain historical job information\n", 35),
        (("qdel", "0"), "qdel: Job has finished 0.pbs-s\n", 35),
        (("qrerun", "1"), "qrerun: Request invalid for state of job 1.pbs-s\n", 168),
        (("qsub", "-q", "nowhere"), "qsub: Unknown queue\n", 170),
    ],
)
def test_complaints(words: tuple[str, ...], errors: str, code: int) -> None:
    stand = Stand()
    stand.ended(primary(stand))
    stand.qsub("-h")
    answer = stand.reply(*words)
    assert (answer.errors, answer.code) == (errors, code)


def test_settings_are_changed_by_qmgr() -> None:
    stand = Stand()
    stand.ask("qmgr", "-c", "set sched preempt_order = SD")
    stand.ask("qmgr", "-c", "set queue scavq kill_delay = 3")
    assert "preempt_order = SD" in stand.ask("qmgr", "-c", "list sched")
    assert "kill_delay = 3" in stand.ask("qstat", "-Qf", "scavq")
