"""A Slurm, a daemon on it, and a training: what live tests and the bench are played on. Processes are ended by the pids we started."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from containers import Containers
from native import Native

from commensald import requests
from commensald.cli.ask import ask
from commensald.cli.lazy import Failed

ROOT = Path(__file__).parents[2]
GRACE_SECONDS = 4
VERSION = os.environ.get("COMMENSAL_TEST_SLURM") or None
"""The installed one if not given."""
DAEMON = ("-c", "from commensald.cli.daemon import main; main()")
ASK = ("-c", "from commensald.cli.commensal import main; main()")
EXAMPLE = ROOT / "worker" / "commensal" / "examples" / "digits_mlp.py"
ENDLESS = ("--steps", "10000000")


class Installation:
    """Context manager: entering starts the cluster, leaving ends everything and checks nothing."""

    def __init__(self, name: str, cluster: Native | Containers) -> None:
        self._cluster = cluster
        self.account, self.nodes, self.environment = cluster.account, cluster.nodes, cluster.environment
        self.folder = self.account.home / name
        self._socket = self.folder / "commensald.sock"
        self._daemon: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self._cluster.prepare()
            self.account.run(["mkdir", "-p", str(self.folder / "trainings")], {})
            self.up()
        except BaseException:
            with contextlib.suppress(subprocess.CalledProcessError):  # of a cluster that was never there
                self._cluster.down()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.end_daemon(signal.SIGTERM)
        self._cluster.down()

    # ---- the cluster

    def up(self) -> None:
        """Start what does not run of the cluster."""
        self._cluster.up()

    def slurm(self, *argv: str) -> str:
        """What a command of Slurm's prints."""
        return self.account.run(argv, self.environment)

    def administer(self, *argv: str) -> str:
        """What it prints to the cluster's operator."""
        return self._cluster.administer(*argv)

    @property
    def release(self) -> str:
        """Of its Slurm: "slurm-wlm 24.11.5"."""
        return self.slurm("sinfo", "--version").strip()

    def signal_cluster(self, daemon: str, number: int) -> None:
        """To ``slurmctld`` (which writes its state down at SIGTERM only) or ``slurmd.NODE``."""
        self._cluster.signal(daemon, number)

    def controller_log(self) -> str:
        """All that slurmctld has logged."""
        return self._cluster.controller_log()

    def jobs(self, *options: str) -> list[tuple[str, str, str]]:
        """(id, state, node) of every job of the scavenger partition that is in the queue."""
        rows = self.slurm("squeue", "-h", "-p", "scavenger", "-o", "%A|%T|%N", *options).splitlines()
        return [(job, state, node) for job, state, node in (row.split("|") for row in rows)]

    # ---- the daemon

    def start_daemon(self, **sections: dict[str, Any]) -> None:
        """Start it, with these configuration sections over the usual ones, and wait until it answers."""
        self._configure(sections)
        command = [self.account.python, *DAEMON, "--config", str(self.folder / "commensal.toml")]
        self._daemon = self._cluster.spawn(command, self.folder / "daemon.log")
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
        copied = shutil.copy(script, folder / "train.py")  # not every account and container sees ours
        path = folder.with_suffix(".toml")
        counts = list(range(1, most + 1))
        self._write(
            path,
            {
                "training": {"name": name, "script": str(copied), "args": list(args), "folder": str(folder), "nodes": [1, most]},
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
                **({"bind": self._cluster.bind} if self._cluster.bind else {}),
                "events": str(self.folder / "events.jsonl"),
                "poll_seconds": 1.0,
                "stale_seconds": 10.0,
            },
            "scheduler": {"kind": "slurm", **({"path": self._cluster.programs} if self._cluster.programs else {})},
            "pilots": {
                "folder": str(self.folder / "pilots"),
                "python": self.account.python,
                "environment": {"OMP_NUM_THREADS": "1"},
                "partition": "scavenger",
            },
            "allocate": {"look_ahead_seconds": 30.0},
        }
        self._write(self.folder / "commensal.toml", {key: usual.get(key, {}) | sections.get(key, {}) for key in usual | sections})

    def forget(self) -> None:
        """Remove everything that it has written."""
        self._cluster.forget()

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


def choices(parser: argparse.ArgumentParser) -> None:
    """Which cluster a bench is for."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--version", default=VERSION, help="of Slurm: 22.05, 24.11 or 26.05 (the installed one)")
    which.add_argument("--containers", action="store_true", help="on the cluster of containers (scripts/docker): three nodes")
    parser.add_argument("--keep", action="store_true", help="leave logs and folder for a look")


def chosen(name: str, options: argparse.Namespace, nodes: int = 4) -> Installation:
    """It, as an installation; a bench that is terminated cleans up as after ^C."""
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    return Installation(name, Containers() if options.containers else Native(name, nodes, GRACE_SECONDS, options.version))


def leave(where: Installation, keep: bool) -> None:
    """Forget its folder, or say where it is."""
    if keep:
        print(f"kept {where.folder}")
    else:
        where.forget()
