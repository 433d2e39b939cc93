"""The daemon as a process, on a real embedded cluster, asked by the real command line, and killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from house import DAEMON, House, until

SLEEPS = "import time\ntime.sleep(600)\n"
RAISES = "raise ValueError('no such luck')\n"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    try:
        house.cluster()
        house.daemon()
        until(house.ready)
        yield house
    finally:
        house.close()


def test_a_day_in_the_life_of_a_researcher(house: House) -> None:
    path = house.training(SLEEPS)
    assert house.run("submit", str(path)).stdout == "submitted t\n"
    again = house.run("submit", str(path))
    assert (again.returncode, again.stderr) == (2, "error: training t: already active; cancel it first or choose another name\n")
    until(lambda: list(house.pilots().values()) == ["running", "running"])
    (row,) = house.listing("trainings")
    assert (row["name"], row["state"]) == ("t", "active")
    assert len(house.listing("windows")) == 3
    assert house.listing("status")["frozen"] is None
    assert house.run("status").stdout.count("running") == 2
    assert (house.folder / "t" / "commensal.key").stat().st_mode & 0o777 == 0o600
    assert json.loads((house.folder / "t" / "coordinator.json").read_text())["incarnation"] == 1
    assert house.run("pause", "nobody").stderr == "error: no training named nobody\n"
    assert house.run("cancel", "t").returncode == 0
    until(lambda: not house.pilots())
    assert house.listing("trainings")[0]["state"] == "cancelled"


def test_a_script_that_raises_is_shown_and_does_not_spin(house: House) -> None:
    house.run("submit", str(house.training(RAISES)))
    until(lambda: bool(house.listing("trainings")[0]["failures"]))
    time.sleep(2.0)
    listing = house.run("trainings").stdout
    assert "backing off" in listing
    assert "ValueError: no such luck" in listing
    assert 1 <= len(house.events("training.failed")) <= 2


def test_a_killed_daemon_comes_back_to_the_same_pilots(house: House) -> None:
    house.run("submit", str(house.training(SLEEPS)))
    until(lambda: list(house.pilots().values()) == ["running", "running"])
    before, status = house.pilots(), house.listing("status")
    os.kill(status["pid"], signal.SIGKILL)
    killed = time.monotonic()
    house.daemon()
    until(house.ready)
    assert time.monotonic() - killed <= 3.0
    assert house.listing("status")["incarnation"] == 2
    time.sleep(1.0)
    assert house.pilots() == before
    assert len(house.events("pilot.submitted")) == 2
    assert house.run("drain").returncode == 0
    assert house.pilots() == {}
    assert house.listing("status")["draining"]


def test_a_drain_does_not_wait_for_a_script_that_never_joins(house: House) -> None:
    house.run("submit", str(house.training(SLEEPS)))
    until(lambda: house.listing("trainings")[0]["starting"] == 2)
    assert house.run("drain", "--wait", "10").stdout == "drained\n"
    assert house.run("drain", "--undo").returncode == 0
    until(lambda: house.listing("trainings")[0]["starting"] == 2)


def test_a_second_daemon_is_turned_away(house: House) -> None:
    command = [*DAEMON, "--config", f"{house.folder}/commensal.toml"]
    second = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert second.returncode == 2
    assert second.stderr.splitlines()[-1].startswith(f"error: state folder {house.folder}/state: another commensald is running on it")
