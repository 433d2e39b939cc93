"""The cluster of containers from `docker compose up` to `down`: it harvests, makes room for a primary job, and takes the nodes back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "scripts" / "docker"
PROJECT = "commensal-test"
PRIMARY_SECONDS = 6.0
"""Well before the partition's grace of 10 s is over: the pilots left by themselves. tests/slurm measures how fast."""
BUILD_SECONDS = 900.0

pytestmark = pytest.mark.timeout(1500)


def engine() -> Sequence[str]:
    """The compose command, where an engine answers."""
    docker = shutil.which("docker")
    if docker is None or _call([docker, "version"], 20).returncode:
        pytest.skip("no container engine answers (scripts/docker/README.md says how to start one by hand)")
    if _call([docker, "compose", "version"], 20).returncode == 0:
        return (docker, "compose")
    old = shutil.which("docker-compose")
    if old is None:
        pytest.skip("docker has no compose")
    return (old,)


def base() -> str:
    """debian:bookworm, or what `scripts/docker/prepare` made."""
    made = _call(["docker", "image", "inspect", "commensal-base:bookworm"], 20)
    return os.environ.get("BASE") or ("debian:bookworm" if made.returncode else "commensal-base:bookworm")


def _call(argv: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, cwd=FOLDER, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL, check=False)


class Cluster:
    """The containers of one project."""

    def __init__(self) -> None:
        self._compose = [*engine(), "-p", PROJECT]
        os.environ["BASE"] = base()
        self.compose("build", "ctl", seconds=BUILD_SECONDS)
        self.compose("up", "--detach", seconds=BUILD_SECONDS)

    def compose(self, *words: str, seconds: float = 120.0) -> str:
        done = _call([*self._compose, *words], seconds)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run(self, *words: str, user: str = "root") -> str:
        """What a command prints in the controller."""
        return self.compose("exec", "-T", "-u", user, "ctl", *words)

    def members(self) -> list[str]:
        """Nodes that train."""
        status: dict[str, Any] = json.loads(self.run("commensal", "status", "--json"))
        return sorted(each["node"] for ring in status["trainings"] for each in ring["members"] if each["state"] == "in ring")

    def until(self, true: Callable[[], bool], what: str, seconds: float) -> None:
        give_up = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < give_up, f"{what}: not within {seconds:g} s\n{self.compose('logs', '--no-color', 'ctl')[-3000:]}"
            time.sleep(0.5)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    try:
        cluster.until(lambda: "submitted digits" in cluster.compose("logs", "--no-color", "ctl"), "the first training", 180.0)
        yield cluster
    finally:
        cluster.compose("down", "--volumes", seconds=300.0)


def test_it_harvests_all_nodes(cluster: Cluster) -> None:
    cluster.until(lambda: cluster.members() == ["n1", "n2", "n3"], "three members", 180.0)


def test_the_doctor_found_it_good(cluster: Cluster) -> None:
    said = cluster.compose("logs", "--no-color", "ctl")
    assert "HARM" not in said
    assert "FAULT" not in said
    assert "pilots' folder: A job on n" in said


def test_a_primary_job_starts_at_once_and_its_nodes_come_back(cluster: Cluster) -> None:
    cluster.until(lambda: cluster.members() == ["n1", "n2", "n3"], "three members", 180.0)
    script = "cd /shared/alice && rm -f p.log && date +%s.%N && sbatch -N2 -t1 -o p.log --wrap 'date +%s.%N; sleep 5'"
    asked = float(cluster.run("sh", "-c", script, user="alice").split()[0])
    cluster.until(lambda: bool(cluster.run("sh", "-c", "cat /shared/alice/p.log || true").strip()), "the primary job", 30.0)
    assert float(cluster.run("cat", "/shared/alice/p.log").split()[0]) - asked < PRIMARY_SECONDS
    cluster.until(lambda: len(cluster.members()) == 3, "three members again", 120.0)


def test_one_command_ends_it(cluster: Cluster) -> None:
    cluster.run("commensal", "drain")
    assert cluster.run("squeue", "-h", "-p", "scavenger").strip() == ""
