"""The daemon as a process, on a real embedded cluster, asked by the real command line, and killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from commensald import requests
from commensald.cli.ask import ask
from commensald.cli.lazy import Failed

DAEMON = [sys.executable, "-c", "from commensald.cli.daemon import main; main()"]
ASK = [sys.executable, "-c", "from commensald.cli.commensal import main; main()"]
SLEEPS = "import time\ntime.sleep(600)\n"
RAISES = "raise ValueError('no such luck')\n"


class House:
    """A folder with a configuration, a cluster, and a daemon that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.socket = folder, folder / "d.sock"
        self._processes: list[subprocess.Popen[bytes]] = []
        (folder / "commensal.toml").write_text(
            f'[daemon]\nstate = "{folder}/state"\nsocket = "{self.socket}"\nbind = "127.0.0.1"\npoll_seconds = 0.1\n'
            f'events = "{folder}/events"\n[scheduler]\nsocket = "{folder}/c.sock"\n[pilots]\nfolder = "{folder}/pilots"\n'
            "[backoff]\nfirst_seconds = 60\n"
        )

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([*DAEMON, *words], stderr=(self.folder / "log").open("ab"))
        self._processes.append(process)
        return process

    def cluster(self) -> None:
        self.start("local-cluster", "--socket", f"{self.folder}/c.sock", "--nodes", "3", "--grace", "3")

    def daemon(self) -> subprocess.Popen[bytes]:
        return self.start("--config", f"{self.folder}/commensal.toml")

    def ready(self) -> bool:
        try:
            ask(self.socket, requests.Ping())
            return True
        except Failed:
            return False

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*ASK, "--socket", str(self.socket), *words], capture_output=True, text=True, timeout=90, check=False)

    def listing(self, *words: str) -> Any:  # noqa: ANN401 - JSON
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def pilots(self) -> dict[str, str]:
        status = ask(self.socket, requests.Status()).status
        assert status is not None
        return {each.uuid: each.state for each in status.pilots}

    def training(self, script: str, name: str = "t") -> Path:
        folder = self.folder / name
        folder.mkdir()
        (folder / "train.py").write_text(script)
        path = self.folder / f"{name}.toml"
        path.write_text(f'[training]\nname = "{name}"\nscript = "{name}/train.py"\nfolder = "{name}"\nnodes = [1, 2]\n')
        return path

    def events(self, kind: str) -> list[dict[str, Any]]:
        events = [json.loads(line) for line in (self.folder / "events").read_text().splitlines()]
        return [each for each in events if each["kind"] == kind]

    def close(self) -> None:
        for process in reversed(self._processes):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


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


def until(what: Callable[[], bool], seconds: float = 20.0) -> None:
    give_up = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < give_up, f"still not after {seconds} s"
        time.sleep(0.02)


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


def test_a_second_daemon_is_turned_away(house: House) -> None:
    command = [*DAEMON, "--config", f"{house.folder}/commensal.toml"]
    second = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert second.returncode == 2
    assert second.stderr.splitlines()[-1].startswith(f"error: state folder {house.folder}/state: another commensald is running on it")
