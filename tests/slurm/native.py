"""A Slurm of several slurmd on this host (scripts/slurm-cluster), all of it an ordinary user's."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from account import PATH, Account, account, forget

CLUSTER = Path(__file__).resolve().parents[2] / "scripts" / "slurm-cluster"


class Native:
    """``nodes`` of them, ``n1`` and so on; ``version`` is the installed one if not given."""

    bind = "127.0.0.1"

    def __init__(self, name: str, nodes: int, grace_seconds: int, version: str | None) -> None:
        self.account: Account = account()
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        self._folder = self.account.home / name / "slurm"
        self._grace_seconds = grace_seconds
        self._version = [] if version is None else ["--version", version]
        self.programs = str(self._folder / "programs" / "bin")
        """Of another release than the installed one."""
        self.environment = {"SLURM_CONF": str(self._folder / "etc" / "slurm.conf"), "PATH": f"{self.programs}:{PATH}"}

    def prepare(self) -> None:
        """Get the programs. By us: root's are everybody's, another account's would be gone with its home."""
        subprocess.run([CLUSTER, "fetch", *self._version], check=True, timeout=900, stdout=subprocess.DEVNULL)

    def up(self) -> None:
        """Start what does not run."""
        self._run("up", "--nodes", str(len(self.nodes)), "--grace", str(self._grace_seconds), *self._version)

    def down(self) -> None:
        """End every job and daemon."""
        self._run("down")

    def forget(self) -> None:
        """Remove the account's folder."""
        forget(self.account)

    def administer(self, *argv: str) -> str:
        """What a command of Slurm's prints to who may do everything: here the user is the cluster's owner."""
        return self.account.run(argv, self.environment)

    def spawn(self, argv: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        """Start a process of the account's."""
        options: dict[str, Any] = self.account.options(self.environment)
        with log.open("ab") as file:
            return subprocess.Popen(argv, stderr=file, stdout=file, **options)

    def signal(self, daemon: str, number: int) -> None:
        """To ``slurmctld`` (which writes its state down at SIGTERM only) or ``slurmd.NODE``."""
        os.kill(int((self._folder / "run" / f"{daemon}.pid").read_text()), number)

    def controller_log(self) -> str:
        """All that slurmctld has logged."""
        return (self._folder / "log" / "slurmctld.log").read_text()

    def _run(self, command: str, *options: str) -> None:
        self.account.run([str(CLUSTER), command, "--folder", str(self._folder), *options], {}, 60.0)
