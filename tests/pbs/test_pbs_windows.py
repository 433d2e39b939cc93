"""What a daemon under PBS knows of the time that its nodes have: reservations, and the scheduler's own plan."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pbs_commands import Pbs, until
from pbs_house import PbsHouse

from commensald.schedulers.pbs.times import duration

SLEEPS = Path(__file__).parents[1] / "slurm" / "scripts" / "sleeps.py"


@pytest.fixture
def house(pbs: Pbs, tmp_path: Path) -> Iterator[PbsHouse]:
    """A daemon whose training only waits."""
    with PbsHouse(tmp_path, pbs, "127.0.0.1", pilots={"standing": 0}) as house:
        yield house


def windows(house: PbsHouse) -> dict[str, dict[str, Any]]:
    return {row["node"]: row for row in house.listing("windows")}


def test_a_pilot_ends_before_a_reservation(house: PbsHouse) -> None:
    begins = time.time() + 150
    start, end = (time.strftime("%Y%m%d%H%M.%S", time.localtime(at)) for at in (begins, begins + 60))
    name = house.pbs.run("pbs_rsub", "-R", start, "-E", end, "--hosts", "n1").split()[0]
    try:
        house.begin()
        house.give("sleeps", 4, SLEEPS, ())
        until(lambda: len(house.pbs.running(house.pbs.scavenger)) == 4, "a pilot on every node", 60.0)
        jobs, now = house.pbs.jobs(), time.time()
        limits = {node: duration(jobs[job]["Resource_List"]["walltime"]) for node, job in house.pbs.running(house.pbs.scavenger).items()}
        assert 60 < (limits.pop("n1") or 0) <= begins - now + 30
        assert min(limit or 0 for limit in limits.values()) > 3600
        assert name.partition(".")[0] in house.run("windows").stdout
    finally:
        house.pbs.run("pbs_rdel", name)


def test_a_window_closes_when_pbs_plans_to_start_a_job(house: PbsHouse) -> None:
    pbs = house.pbs
    pbs.qsub("sleep 100", "-q", pbs.primary, "-l", "select=1:host=n1:ncpus=4", "-l", "walltime=5:00", "-o", "/dev/null", "-j", "oe")
    big = pbs.qsub("true", "-q", pbs.primary, "-l", "select=4:ncpus=4", "-l", "walltime=1:00", "-o", "/dev/null", "-j", "oe")
    planned = time.mktime(time.strptime(pbs.jobs()[big]["estimated"]["start_time"]))
    house.begin()
    until(lambda: set(windows(house)) >= {"n2", "n3", "n4"}, "the daemon to see the plan")
    rows = windows(house)
    for node in ("n2", "n3", "n4"):
        assert time.time() + rows[node]["closes_seconds"] == pytest.approx(planned, abs=5.0), json.dumps(rows)
    house.give("sleeps", 4, SLEEPS, ())
    until(lambda: set(pbs.running(pbs.scavenger)) == {"n2", "n3", "n4"}, "pilots in the hole", 60.0)
    jobs = pbs.jobs()
    for job in pbs.running(pbs.scavenger).values():
        assert (duration(jobs[job]["Resource_List"]["walltime"]) or 0) <= planned - time.time() + 5.0


def test_times_are_right_wherever_the_daemon_runs(pbs: Pbs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    with PbsHouse(tmp_path, pbs, "127.0.0.1", pilots={"standing": 0, "max_minutes": 10.0}) as house:
        house.begin()
        house.give("sleeps", 4, SLEEPS, ())
        until(lambda: {each.state for each in house.status().pilots} == {"running"}, "pilots to run", 60.0)
        assert all(500.0 < (each.ends_in_seconds or 0.0) <= 600.0 for each in house.status().pilots)
