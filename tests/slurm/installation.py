"""A Slurm, a daemon on it, and a training: what live tests and the bench are played on. Processes are ended by the pids we started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from account import PATH, Account, account

from commensald import requests
from commensald.cli.ask import ask
from commensald.cli.lazy import Failed

ROOT = Path(__file__).parents[2]
GRACE_SECONDS = 4
CLUSTER = ROOT / "scripts" / "slurm-cluster"
VERSION = os.environ.get("COMMENSAL_TEST_SLURM") or None
"""The installed one if not given."""
DAEMON = ("-c", "from commensald.cli.daemon import main; main()")
ASK = ("-c", "from commensald.cli.commensal import main; main()")
EXAMPLE = ROOT / "worker" / "commensal" / "examples" / "digits_mlp.py"
ENDLESS = ("--steps", "10000000")


class Installation:
    """Context manager: entering starts the cluster, leaving ends everything and checks nothing."""

    def __init__(self, name: str, nodes: int = 4, grace_seconds: int = GRACE_SECONDS, version: str | None = VERSION) -> None:
        self.account: Account = account()
        self.folder = self.account.home / name
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        self._grace_seconds = grace_seconds
        self._socket = self.folder / "commensald.sock"
        self._daemon: subprocess.Popen[bytes] | None = None
        self._version = [] if version is None else ["--version", version]
        self.environment = {"SLURM_CONF": str(self.folder / "slurm" / "etc" / "slurm.conf"), "PATH": f"{self._programs}:{PATH}"}

    def __enter__(self) -> Self:
        self.account.run(["mkdir", "-p", str(self.folder / "trainings")], {})
        # By us: root's is everybody's, another account's would be gone with its home.
        subprocess.run([CLUSTER, "fetch", *self._version], check=True, timeout=900, stdout=subprocess.DEVNULL)
        self.up()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.end_daemon(signal.SIGTERM)
        self._cluster("down")

    # ---- the cluster

    def up(self) -> None:
        """Start what does not run of the cluster."""
        self._cluster("up", "--nodes", str(len(self.nodes)), "--grace", str(self._grace_seconds), *self._version)

    def _cluster(self, command: str, *options: str) -> None:
        self.account.run([str(CLUSTER), command, "--folder", str(self.folder / "slurm"), *options], {}, 60.0)

    @property
    def _programs(self) -> Path:
        """Of another release than the installed one."""
        return self.folder / "slurm" / "programs" / "bin"

    def slurm(self, *argv: str) -> str:
        """What a command of Slurm's prints."""
        return self.account.run(argv, self.environment)

    @property
    def release(self) -> str:
        """Of its Slurm: "slurm-wlm 24.11.5"."""
        return self.slurm("sinfo", "--version").strip()

    def signal_cluster(self, daemon: str, number: int) -> None:
        """To ``slurmctld`` (which writes its state down at SIGTERM only) or ``slurmd.NODE``."""
        os.kill(int((self.folder / "slurm" / "run" / f"{daemon}.pid").read_text()), number)

    def jobs(self, *options: str) -> list[tuple[str, str, str]]:
        """(id, state, node) of every job of the scavenger partition that is in the queue."""
        rows = self.slurm("squeue", "-h", "-p", "scavenger", "-o", "%A|%T|%N", *options).splitlines()
        return [(job, state, node) for job, state, node in (row.split("|") for row in rows)]

    # ---- the daemon

    def start_daemon(self, **sections: dict[str, Any]) -> None:
        """Start it, with these configuration sections over the usual ones, and wait until it answers."""
        self._configure(sections)
        with (self.folder / "daemon.log").open("ab") as log:
            options = self.account.options(self.environment)
            command = [self.account.python, *DAEMON, "--config", str(self.folder / "commensal.toml")]
            self._daemon = subprocess.Popen(command, stderr=log, stdout=log, **options)
        until(self._settled, "the daemon to answer")
        assert self._daemon.poll() is None, (self.folder / "daemon.log").read_text()[-2000:]

    def end_daemon(self, number: int) -> None:
        """Send it this signal, and reap it."""
        if self._daemon is None:
            return
        self._daemon.send_signal(number)
        try:
            self._daemon.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self._daemon.kill()
            self._daemon.wait()
        self._daemon = None

    def _settled(self) -> bool:
        return self.ready() or (self._daemon is not None and self._daemon.poll() is not None)

    def ready(self) -> bool:
        """Whether it answers."""
        try:
            ask(self._socket, requests.Ping())
            return True
        except Failed:
            return False

    def status(self) -> requests.StatusReport:
        """What it says."""
        report = ask(self._socket, requests.Status()).status
        assert report is not None
        return report

    def members(self) -> list[str]:
        """Nodes of the members that step."""
        return [each.node for ring in self.status().trainings for each in ring.members if each.state == "in ring"]

    def ask(self, *words: str) -> str:
        """``commensal WORDS``, as a person types it."""
        return self.account.run([self.account.python, *ASK, "--socket", str(self._socket), *words], self.environment, 90.0)

    def submit(self, name: str, script: Path = EXAMPLE, args: tuple[str, ...] = ENDLESS, most: int | None = None) -> None:
        """Hand it a training for one to ``most`` nodes, or to all."""
        most = most or len(self.nodes)
        folder = self.folder / "trainings" / name
        self.account.run(["mkdir", "-p", str(folder)], {})
        path = folder.with_suffix(".toml")
        counts = list(range(1, most + 1))
        self._write(
            path,
            {
                "training": {"name": name, "script": str(script), "args": list(args), "folder": str(folder), "nodes": [1, most]},
                # Measured here, where all nodes are one machine, a second one would not pay.
                "curve": {"nodes": counts, "samples_per_second": [1000.0 * count for count in counts]},
                "rescale": {"stall_seconds": 0.2, "warmup_seconds": 3.0},
            },
        )
        self.ask("submit", str(path))

    def events(self) -> list[dict[str, Any]]:
        """Everything the daemons have logged."""
        path = self.folder / "events.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def _configure(self, sections: dict[str, dict[str, Any]]) -> None:
        usual: dict[str, dict[str, Any]] = {
            "daemon": {
                "state": str(self.folder / "state"),
                "socket": str(self._socket),
                "bind": "127.0.0.1",
                "events": str(self.folder / "events.jsonl"),
                "poll_seconds": 1.0,
                "stale_seconds": 10.0,
            },
            "scheduler": {"kind": "slurm", "path": str(self._programs)},
            "pilots": {
                "folder": str(self.folder / "pilots"),
                "python": self.account.python,
                "environment": {"OMP_NUM_THREADS": "1"},
                "partition": "scavenger",
            },
            "allocate": {"look_ahead_seconds": 30.0},
        }
        self._write(self.folder / "commensal.toml", {key: usual.get(key, {}) | sections.get(key, {}) for key in usual | sections})

    def _write(self, path: Path, tables: dict[str, dict[str, Any]]) -> None:
        import toml

        path.write_text(toml.dumps(tables))
        path.chmod(0o644)


def until(what: Callable[[], bool], words: str, seconds: float = 30.0) -> float:
    """How long it took. Raises AssertionError."""
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < seconds, f"waited {seconds:g} s for {words}"
        time.sleep(0.05)
    return time.monotonic() - began
