"""Our own workload leaves the holes it is made for."""

from __future__ import annotations

import itertools

import pytest

from commensald.schedulers.local.core import Core
from commensald.schedulers.local.generator import Mix, generate
from commensald.schedulers.local.jobs import Policy
from commensald.schedulers.local.virtual import VirtualCluster, play

NODES = tuple(f"n{i}" for i in range(1, 9))
SECONDS = 120.0


def holes(seed: int) -> tuple[int, float, list[float]]:
    """Primary jobs started in two minutes, share of idle node-time, lengths of the closed idle spans."""
    cluster = VirtualCluster(Core(NODES, Policy()))
    jobs = list(itertools.takewhile(lambda job: job.at < SECONDS, generate(seed, len(NODES))))
    idle_since, spans = dict.fromkeys(NODES, 0.0), list[float]()
    for now in itertools.takewhile(lambda now: now < SECONDS, play(cluster, jobs)):
        for node in NODES:
            if node in cluster.core.primary_on:
                spans += [now - idle_since.pop(node)] if node in idle_since else []
            else:
                idle_since.setdefault(node, now)
    idle = sum(spans) + sum(SECONDS - since for since in idle_since.values())
    return sum(at < SECONDS for at in cluster.started.values()), idle / (SECONDS * len(NODES)), [s for s in spans if s > 0]


@pytest.mark.parametrize("seed", range(8))
def test_a_busy_cluster_with_real_holes(seed: int) -> None:
    started, idle, spans = holes(seed)
    assert started >= 10
    assert 0.25 <= idle <= 0.55
    assert sum(10.0 <= span <= 40.0 for span in spans) >= 5


def test_the_seed_decides_all_and_every_job_keeps_its_limit() -> None:
    first, again, other = (list(itertools.islice(generate(seed, 8), 200)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert all(job.time_limit is not None and job.time_limit >= job.seconds and 1 <= job.node_count <= 8 for job in first)


def test_load_sets_how_much_arrives() -> None:
    for load in (0.3, 0.9):
        jobs = list(itertools.islice(generate(0, 8, Mix(load=load)), 500))
        assert sum(job.node_count * job.seconds for job in jobs) / (8 * jobs[-1].at) == pytest.approx(load, rel=0.1)
