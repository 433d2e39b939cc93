"""The cluster of containers (scripts/docker) under the scenarios: hosts of their own, one kernel, and a folder that all of them share."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docker"))
from compose import Compose

PROJECT = "commensal-scenario"
UID = 912
"""Of the account ``commensal`` in the image (Dockerfile)."""
READY_SECONDS = 60.0


class Inside(msgspec.Struct, frozen=True, kw_only=True):
    """The service account in the controller. ``home`` is one folder, at one path, in all containers and out here."""

    compose: Compose
    home: Path
    user: str = "commensal"
    python: str = "/opt/commensal/bin/python"

    def run(self, argv: Sequence[str], environment: dict[str, str], seconds: float = 30.0) -> str:
        """What it printed. Raises CalledProcessError with its output, and TimeoutExpired."""
        options = ["-w", str(self.home), *(word for key, value in environment.items() for word in ("-e", f"{key}={value}"))]
        return self.compose.inside("ctl", *argv, user=self.user, options=options, seconds=seconds)


class Containers:
    """The controller and the nodes of compose.yaml, their Slurm daemons started from here so that a scenario can end them."""

    bind = None
    programs = None

    def __init__(self) -> None:
        if os.geteuid() != 0:
            raise SystemExit("the cluster of containers writes into a folder out here as the image's own account: root only")
        home = Path(tempfile.mkdtemp(prefix="commensal-containers-"))
        os.chown(home, UID, UID)
        home.chmod(0o755)
        self.nodes = ["n1", "n2", "n3"]
        self._compose = Compose(PROJECT, {"services": self._services(home)}, home)
        self.account = Inside(compose=self._compose, home=home)
        self.environment: dict[str, str] = {}

    def _services(self, home: Path) -> dict[str, Any]:
        roles = {"ctl": "controller", **dict.fromkeys(self.nodes, "node")}
        shared = {"volumes": [f"{home}:{home}"], "healthcheck": {"disable": True}}
        return {name: {"command": ["munge", role], **shared} for name, role in roles.items()}

    def prepare(self) -> None:
        """Containers without Slurm's daemons."""
        self._compose.down()  # of one that was killed
        self._compose.up()

    def up(self) -> None:
        """Start what does not run, and wait until no node is missing."""
        for service, daemon in {"ctl": "slurmctld", **dict.fromkeys(self.nodes, "slurmd")}.items():
            self._compose.inside(service, "entry", "ensure", daemon)
        give_up = time.monotonic() + READY_SECONDS
        while self._ready() < len(self.nodes):
            if time.monotonic() > give_up:
                raise TimeoutError(f"not all nodes are ready after {READY_SECONDS:g} s:\n{self.controller_log()[-2000:]}")
            time.sleep(0.2)

    def _ready(self) -> int:
        states = self.administer("sinfo", "-h", "-N", "-p", "primary", "-o", "%T").split()
        return sum(state in ("idle", "mixed", "allocated", "planned") for state in states)

    def down(self) -> None:
        """Everything in them ends with the containers."""
        self._compose.down()

    def forget(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.account.home, ignore_errors=True)

    def administer(self, *argv: str) -> str:
        """What a command of Slurm's prints to root."""
        return self._compose.inside("ctl", *argv)

    def spawn(self, argv: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        """Start a process of the account's in the controller."""
        pid_file = log.with_suffix(".pid")
        script = 'echo $$ >"$0" && exec "$@"'
        words = self._compose.words("ctl", "sh", "-c", script, str(pid_file), *argv, user=self.account.user)
        pid_file.unlink(missing_ok=True)
        with log.open("ab") as file:
            return _Spawned(self._compose, pid_file, words, file)

    def signal(self, daemon: str, number: int) -> None:
        """To ``slurmctld`` or ``slurmd.NODE``."""
        name, _, node = daemon.partition(".")
        self._compose.inside(node or "ctl", "sh", "-c", f"kill -{int(number)} $(cat /run/{name}.pid)")

    def controller_log(self) -> str:
        """All that slurmctld has logged."""
        return self._compose.inside("ctl", "cat", "/var/log/slurm/slurmctld.log")


class _Spawned(subprocess.Popen[bytes]):
    """Out here is only the engine's client, which ends when the process does: signals go to the process."""

    def __init__(self, compose: Compose, pid_file: Path, words: Sequence[str], log: BinaryIO) -> None:
        self._compose, self._pid_file = compose, pid_file
        super().__init__(compose.argv(*words), stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def send_signal(self, number: int) -> None:
        """To the process in the container; it may be gone already."""
        self._compose.inside("ctl", "sh", "-c", f"kill -{int(number)} {int(self._pid_file.read_text())} || true")
