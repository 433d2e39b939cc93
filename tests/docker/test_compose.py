"""The cluster of containers from `docker compose up` to `down`: it harvests, makes room for a primary job, and takes the nodes back."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from compose import Compose, NoEngineError

PROJECT = "commensal-test"
PRIMARY_SECONDS = 6.0
"""Well before the partition's grace of 10 s is over: the pilots left by themselves. scripts/bench/slurm_scenario.py measures how fast."""

pytestmark = pytest.mark.timeout(1500)


class Cluster:
    """The containers of one project."""

    def __init__(self) -> None:
        try:
            self.compose = Compose(PROJECT)
        except NoEngineError as error:
            pytest.skip(str(error))

    def run(self, *words: str, user: str = "root") -> str:
        """What a command prints in the controller."""
        return self.compose.inside("ctl", *words, user=user)

    def said(self) -> str:
        """What the controller has printed."""
        return self.compose("logs", "--no-color", "ctl")

    def members(self) -> list[str]:
        """Nodes that train."""
        status: dict[str, Any] = json.loads(self.run("commensal", "status", "--json"))
        return sorted(each["node"] for ring in status["trainings"] for each in ring["members"] if each["state"] == "in ring")

    def until(self, true: Callable[[], bool], what: str, seconds: float) -> None:
        give_up = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < give_up, f"{what}: not within {seconds:g} s\n{self.said()[-3000:]}"
            time.sleep(0.5)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    try:
        cluster.compose.up()
        cluster.until(lambda: "submitted digits" in cluster.said(), "the first training", 180.0)
        yield cluster
    finally:
        cluster.compose.down()


def test_it_harvests_all_nodes(cluster: Cluster) -> None:
    cluster.until(lambda: cluster.members() == ["n1", "n2", "n3"], "three members", 180.0)


def test_the_doctor_found_it_good(cluster: Cluster) -> None:
    said = cluster.said()
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
