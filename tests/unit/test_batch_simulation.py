"""The elastic-batch simulation, where the outcome can be worked out by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts" / "bench"))
from elastic_batch import POLICIES, Cluster, Setting, simulate
from elastic_workload import KINDS, Job, profile

SETTING = Setting(devices=10, load="light", drop=False, hours=4.0, interval_seconds=600.0, restart_seconds=30.0, noise_scale=None)


def job(name: str, arrival: float, work: float) -> Job:
    return Job(name=name, arrival=arrival, work=work, times=profile(*KINDS["compute"]), random_batch=100)


def test_a_job_alone_waits_for_the_interval_starts_and_trains_at_the_best_rate() -> None:
    alone = job("a", arrival=700.0, work=1e5)
    cluster = Cluster([alone], "elastic", SETTING)
    cluster.run()
    rate = 512 / float(alone.times.step_seconds(10, 512))
    assert cluster.finished == {"a": pytest.approx(1200.0 + 30.0 + 1e5 / rate)}
    assert cluster.outcome().minutes == pytest.approx((500.0 + 30.0 + 1e5 / rate) / 60)
    assert cluster.restarts == 0


def test_a_fixed_batch_needs_the_devices_that_hold_it() -> None:
    pair = [job("a", 0.0, 3e5), job("b", 0.0, 3e5)]
    outcomes = {}
    for policy in ("fixed largest", "elastic"):
        cluster = Cluster(pair, policy, SETTING)
        cluster.run()
        outcomes[policy] = sorted(cluster.finished.values())
    first, second = outcomes["fixed largest"]
    assert second > 1.9 * first, "one after the other"
    assert outcomes["elastic"][1] < second


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("drop", [False, True])
def test_every_job_ends_once(policy: str, drop: bool) -> None:
    setting = Setting(devices=16, load="heavy", drop=drop, hours=2.0, interval_seconds=600.0, restart_seconds=30.0, noise_scale=200.0)
    outcome = simulate(setting, policy, seed=1)
    assert outcome.completed + outcome.dropped <= outcome.jobs
    assert drop or outcome.dropped == 0
    assert outcome.completed > 0


def test_the_same_seed_is_the_same_run() -> None:
    assert simulate(SETTING, "elastic", 3) == simulate(SETTING, "elastic", 3)
