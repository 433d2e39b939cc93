"""The daemon under a supervisor that speaks systemd's protocol, with memory as the unit allows it."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

DAEMON = [sys.executable, "-c", "from commensald.cli.daemon import main; main()"]
PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 65, 1
WATCHDOG_SECONDS = 0.6


class Supervisor:
    """A daemon with its notification socket; ``wait`` reads what it says."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.config = folder, folder / "commensal.toml"
        self._ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._ear.bind(str(folder / "notify"))
        self.write()
        self.cluster = subprocess.Popen([*DAEMON, "local-cluster", "--socket", f"{folder}/c.sock", "--nodes", "2"])
        environment = {**os.environ, "NOTIFY_SOCKET": f"{folder}/notify", "WATCHDOG_USEC": str(int(WATCHDOG_SECONDS * 1e6))}
        self.daemon = subprocess.Popen(
            [*DAEMON, "--config", str(self.config)], env=environment, stderr=(folder / "log").open("wb"), preexec_fn=deny_write_execute
        )

    def write(self, daemon: str = "poll_seconds = 30", rest: str = "") -> None:
        where = f'state = "{self.folder}/state"\nsocket = "{self.folder}/d.sock"\nbind = "127.0.0.1"\n'
        self.config.write_text(
            f'[daemon]\n{where}{daemon}\n[scheduler]\nsocket = "{self.folder}/c.sock"\n[pilots]\nfolder = "{self.folder}/pilots"\n{rest}'
        )

    def wait(self, word: str, seconds: float = 20.0) -> list[str]:
        """The words of the first datagram that has ``word``."""
        give_up = time.monotonic() + seconds
        while (left := give_up - time.monotonic()) > 0:
            self._ear.settimeout(left)
            words = self._ear.recv(4096).decode().splitlines()
            if any(each.startswith(word) for each in words):
                return words
        raise AssertionError(f"no {word} in {seconds} s: {(self.folder / 'log').read_text()}")

    def close(self) -> None:
        for process in (self.daemon, self.cluster):
            process.kill()
            process.wait()
        self._ear.close()


def deny_write_execute() -> None:
    """What MemoryDenyWriteExecute= does, by the kernel's own switch (prctl(2), Linux 6.3); older kernels refuse it and we go on."""
    ctypes.CDLL(None).prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    supervisor = Supervisor(tmp_path)
    try:
        supervisor.wait("READY=1")
        yield supervisor
    finally:
        supervisor.close()


def test_the_loop_feeds_the_watchdog_in_time_also_between_polls(supervisor: Supervisor) -> None:
    supervisor.wait("WATCHDOG=1")
    fed = []
    for _ in range(4):
        assert any(word.startswith("STATUS=") for word in supervisor.wait("WATCHDOG=1"))
        fed.append(time.monotonic())
    assert max(after - before for before, after in pairwise(fed)) < WATCHDOG_SECONDS


def test_a_reload_is_announced_on_the_machines_clock_and_ends(supervisor: Supervisor) -> None:
    supervisor.write("poll_seconds = 20", "[ring]\nlost_after = 3\n")
    supervisor.daemon.send_signal(signal.SIGHUP)
    words = dict(each.split("=", 1) for each in supervisor.wait("RELOADING=1"))
    assert abs(int(words["MONOTONIC_USEC"]) / 1e6 - time.monotonic()) < 5
    supervisor.wait("READY=1")
    assert "a new start is needed for ring.lost_after" in (supervisor.folder / "log").read_text()


def test_a_bad_configuration_is_not_taken_over(supervisor: Supervisor) -> None:
    supervisor.write("pol_seconds = 1")
    supervisor.daemon.send_signal(signal.SIGHUP)
    supervisor.wait("READY=1")
    assert "did you mean 'daemon.poll_seconds'?" in (supervisor.folder / "log").read_text()
    supervisor.wait("WATCHDOG=1")
    assert supervisor.daemon.poll() is None


def test_says_that_it_stops(supervisor: Supervisor) -> None:
    supervisor.daemon.send_signal(signal.SIGTERM)
    supervisor.wait("STOPPING=1")
    assert supervisor.daemon.wait(timeout=10) == 0
