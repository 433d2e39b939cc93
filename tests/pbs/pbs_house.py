"""A daemon on whatever PBS is on PATH, and trainings: a folder that the nodes see too, a configuration, processes that we started."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import toml
from pbs_commands import Pbs, until

from commensald import requests
from commensald.cli.ask import ask

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS / "chaos"))
from house import House  # noqa: E402

EXAMPLE = TESTS.parent / "worker" / "commensal" / "examples" / "digits_mlp.py"
ENDLESS = ("--steps", "10000000")
MEMBERS_SECONDS = 90.0
PILOT, PRIMARY = "commensal", "commensal-primary"
"""Names of jobs."""


class PbsHouse(House):
    """``bind``: the daemon's address, ``None`` for this host's own. ``sections`` go over the usual configuration."""

    def __init__(self, folder: Path, pbs: Pbs, bind: str | None = None, **sections: dict[str, Any]) -> None:
        super().__init__(folder)
        self.pbs = pbs
        usual: dict[str, dict[str, Any]] = {
            "daemon": {
                "state": f"{folder}/state",
                "socket": str(self.socket),
                "events": f"{folder}/events",
                "poll_seconds": 1.0,
                "stale_seconds": 10.0,
                **({"bind": bind} if bind else {}),
            },
            "scheduler": {"kind": "pbs", "path": str(Path(shutil.which("qstat") or "/opt/pbs/bin/qstat").parent)},
            "pilots": {"folder": f"{folder}/pilots", "environment": {"OMP_NUM_THREADS": "1"}, "partition": pbs.scavenger},
        }
        tables = {name: usual.get(name, {}) | sections.get(name, {}) for name in usual | sections}
        (folder / "commensal.toml").write_text(toml.dumps(tables))

    def begin(self) -> None:
        """Start the daemon, and wait until it answers."""
        self._daemon = self.daemon()
        until(lambda: self.ready() or self._daemon.poll() is not None, "the daemon to answer")
        assert self._daemon.poll() is None, self.log()

    def kill(self) -> None:
        """SIGKILL to the daemon."""
        self._daemon.kill()
        self._daemon.wait()

    def give(self, name: str, most: int, script: Path = EXAMPLE, args: tuple[str, ...] = ENDLESS) -> None:
        """Submit a training for one to ``most`` nodes."""
        folder, counts = self.folder / name, list(range(1, most + 1))
        folder.mkdir()
        tables = {
            "training": {"name": name, "script": str(script), "args": list(args), "folder": str(folder), "nodes": [1, most]},
            "curve": {"nodes": counts, "samples_per_second": [1000.0 * count for count in counts]},
        }
        folder.with_suffix(".toml").write_text(toml.dumps(tables))
        done = self.run("submit", str(folder.with_suffix(".toml")))
        assert done.returncode == 0, done.stderr

    def status(self) -> requests.StatusReport:
        """What the daemon says."""
        report = ask(self.socket, requests.Status()).status
        assert report is not None
        return report

    def members(self) -> list[str]:
        """Nodes of the members that step."""
        return [each.node for ring in self.status().trainings for each in ring.members if each.state == "in ring"]

    def filled(self, count: int) -> None:
        """Wait until a ring of so many has settled a few steps."""
        try:
            until(lambda: len(self.members()) == count, f"{count} members", MEMBERS_SECONDS)
            before = self._settled()
            until(lambda: self._settled() >= before + 3, "steps", MEMBERS_SECONDS)
        except AssertionError as error:
            error.add_note(f"{self.pbs.run('qstat')}\n{self.status()}\n{self.log()}")
            raise

    def _settled(self) -> int:
        return sum(each.settled for each in self.status().trainings)

    def log(self) -> str:
        """The end of the daemon's."""
        return (self.folder / "log").read_text()[-3000:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
        self.pbs.end(PILOT, PRIMARY)
        if error is None:
            shutil.rmtree(self.folder, ignore_errors=True)


def scratch() -> Path:
    """A folder for a house; on a real PBS one that its nodes see too (PBS_TEST_FOLDER)."""
    return Path(tempfile.mkdtemp(prefix="commensal-pbs-", dir=os.environ.get("PBS_TEST_FOLDER")))
