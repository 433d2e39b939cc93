"""What goes wrong under PBS: answers that are cut, late or no answers, a submission that is accepted unheard, suspension, requeueing,
a server that restarts. Nothing is ended, started twice or left behind by it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pbs_commands import Pbs, until
from pbs_fake import Fake
from pbs_house import PbsHouse

from commensald.schedulers.pbs import script

SLEEPS = Path(__file__).parents[1] / "slurm" / "scripts" / "sleeps.py"
COMMAND_SECONDS = 2.0
FREEZES_SECONDS = 40.0


@pytest.fixture
def house(pbs: Pbs, tmp_path: Path) -> Iterator[PbsHouse]:
    """A daemon that soon loses patience, and a training that only waits."""
    sections: dict[str, dict[str, Any]] = {
        "daemon": {"stale_seconds": 3.0},
        "scheduler": {"command_seconds": COMMAND_SECONDS},
        "pilots": {"minimum_window_seconds": 5.0, "standing": 0},
    }
    with PbsHouse(tmp_path, pbs, "127.0.0.1", **sections) as house:
        yield house


def started(house: PbsHouse) -> dict[str, str]:
    """Node -> job, once a process waits on every node."""
    house.begin()
    house.give("sleeps", 4, SLEEPS, ())
    return at_work(house)


def at_work(house: PbsHouse) -> dict[str, str]:
    pbs, nodes = house.pbs, set(house.pbs.nodes())
    try:
        until(lambda: set(pbs.running(pbs.scavenger)) == nodes, "a pilot on every node", 60.0)
        until(lambda: len(list(house.folder.glob("sleeps/runs-*"))) >= len(nodes), "a process on every node", 60.0)
    except AssertionError as error:
        error.add_note(f"{pbs.run('qstat')}\n{house.log()}")
        raise
    return pbs.running(pbs.scavenger)


def frozen(house: PbsHouse, *, so: bool) -> None:
    until(lambda: (house.status().frozen is not None) is so, f"decisions to be {'frozen' if so else 'made again'}", FREEZES_SECONDS)


def primary(house: PbsHouse, nodes: int, seconds: float, *options: str) -> float:
    """Seconds until its first process."""
    mark, began = house.folder / f"primary-{time.time_ns()}", time.time()
    body = f"date +%s.%N > {mark}.part; mv {mark}.part {mark}; sleep {seconds}"
    where = ("-l", f"select={nodes}:ncpus=4", "-l", "walltime=00:02:00")
    house.pbs.qsub(body, "-q", house.pbs.primary, *where, "-o", "/dev/null", "-j", "oe", *options)
    until(mark.exists, "a primary job to start")
    return float(mark.read_text()) - began


@pytest.mark.parametrize(
    "fault",
    [
        {"cut": 700},
        {"sleep": COMMAND_SECONDS + 1.0},
        {"say": "Segmentation fault\n"},
    ],
    ids=["cut", "late", "wrong"],
)
def test_a_qstat_that_cannot_be_read_freezes_decisions_and_ends_no_pilot(house: PbsHouse, fake: Fake, fault: dict[str, object]) -> None:
    before = started(house)
    fake.spoil("qstat", **fault)
    frozen(house, so=True)
    fake.mend()
    frozen(house, so=False)
    time.sleep(2.0)
    assert house.pbs.running(house.pbs.scavenger) == before
    assert len(house.events("pilot.submitted")) == len(before)


def test_a_submission_that_is_accepted_unheard_is_found_and_not_repeated(house: PbsHouse, fake: Fake) -> None:
    fake.spoil("qsub", sleep=COMMAND_SECONDS + 1.0)
    jobs = started(house)
    assert sorted(house.pbs.of(house.pbs.scavenger)) == sorted(jobs.values())
    until(lambda: {each.job for each in house.status().pilots} == set(jobs.values()), "the daemon to know its jobs")
    assert len(house.events("pilot.submitted")) == len(jobs)


def test_a_suspended_pilot_counts_as_lost_and_is_deleted(house: PbsHouse, fake: Fake) -> None:
    fake.set("sched preempt_order", "S")
    before = started(house)
    assert primary(house, 1, 20.0) < 2.0
    held = set(house.pbs.running(house.pbs.primary))
    (pilot,) = (job for node, job in before.items() if node in held)
    until(lambda: pilot not in house.pbs.jobs(), "the suspended pilot to be deleted")
    left = {each.job for each in house.status().pilots}
    until(lambda: pilot not in {each.job for each in house.status().pilots}, "the daemon to forget it")
    assert {job for job in before.values() if job != pilot} <= left
    assert {node: job for node, job in before.items() if node not in held}.items() <= house.pbs.running(house.pbs.scavenger).items()


def test_a_requeued_pilot_is_deleted_before_it_runs_again(house: PbsHouse) -> None:
    before = started(house)
    assert primary(house, 1, 20.0) < 2.0
    held = set(house.pbs.running(house.pbs.primary))
    (pilot,) = (job for node, job in before.items() if node in held)
    until(lambda: pilot not in house.pbs.jobs(), "the requeued pilot to be deleted")
    assert house.pbs.past(pilot)["run_count"] == 1
    assert {node: job for node, job in before.items() if node not in held}.items() <= house.pbs.running(house.pbs.scavenger).items()


def test_a_second_incarnation_exits_at_once(pbs: Pbs, tmp_path: Path) -> None:
    log = tmp_path / "incarnations"
    text = script.pilot("u", str(tmp_path), ["sh", "-c", f"echo run >> {log}; sleep 100"], {"PATH": "/usr/bin:/bin"})
    job = pbs.qsub(text, "-q", pbs.scavenger, "-r", "y", "-S", "/bin/sh", "-o", "/dev/null", "-j", "oe")
    until(log.exists, "the first incarnation")
    pbs.run("qrerun", job)
    until(lambda: job not in pbs.jobs(), "the second incarnation to end")
    ended = pbs.past(job)
    assert (ended["run_count"], ended["Exit_status"], log.read_text()) == (2, 0, "run\n")


def test_a_pilot_of_a_dead_daemon_runs_once(house: PbsHouse) -> None:
    before = started(house)
    house.kill()
    primary(house, 4, 1.0)
    until(lambda: not house.pbs.of(house.pbs.scavenger), "the second incarnations to end")
    assert {house.pbs.past(job)["run_count"] for job in before.values()} == {2}
    for path in house.folder.glob("sleeps/runs-*"):
        path.unlink()
    house.begin()
    after = at_work(house)
    assert not set(after.values()) & set(before.values())


def test_a_server_that_restarts_finds_everything_as_it_was(house: PbsHouse, fake: Fake) -> None:
    before = started(house)
    fake.away(away=True)
    frozen(house, so=True)
    fake.away(away=False)
    frozen(house, so=False)
    time.sleep(2.0)
    assert house.pbs.running(house.pbs.scavenger) == before


def test_a_daemon_killed_at_any_instant_leaves_no_orphan_and_no_twin(house: PbsHouse) -> None:
    house.begin()
    house.give("sleeps", 4, SLEEPS, ())
    for pause in (0.2, 0.9, 1.7):
        time.sleep(pause)
        house.kill()
        house.begin()
    at_work(house)
    time.sleep(2.0)
    jobs = house.pbs.of(house.pbs.scavenger)
    assert len(jobs) == len(house.pbs.nodes())
    assert set(jobs) <= {each.job for each in house.status().pilots}


def test_a_users_variables_break_the_json_and_nothing_else(house: PbsHouse) -> None:
    pbs = house.pbs
    variables = "FOO=005,'BASH_FUNC_module%%=() {  eval `x`\n}'"
    where = ("-l", "select=1:host=n2:ncpus=4", "-l", "walltime=30:00", "-o", "/dev/null", "-j", "oe")
    job = pbs.qsub("sleep 600", "-q", pbs.primary, "-v", variables, "-N", 'odd"\\name', *where)
    with pytest.raises(json.JSONDecodeError):
        pbs.jobs()
    try:
        house.begin()
        house.give("sleeps", 4, SLEEPS, ())
        until(lambda: len(list(house.folder.glob("sleeps/runs-*"))) == 3, "a process on the other nodes", 60.0)
        assert house.status().frozen is None
        assert {each.node for each in house.status().pilots} == {"n1", "n3", "n4"}
    finally:
        pbs.run("qdel", job)
