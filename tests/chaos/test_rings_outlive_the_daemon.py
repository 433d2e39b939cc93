"""The daemon is killed while a ring steps: the ring goes on, and what it lost meanwhile is made up for when the daemon is back."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from house import House, until

from commensald.schedulers.local.client import LocalScheduler

SCRIPT = """
import os, time
import torch
import commensal
torch.set_num_threads(1)
torch.manual_seed(0)
inputs = torch.randn(256, 8)
model = torch.nn.Linear(8, 1)
training = commensal.Training(model, torch.optim.SGD(model.parameters(), lr=0.01), torch.utils.data.TensorDataset(inputs, inputs.sum(1)),
                              batch_size=32, micro_batch=8, steps=1000000)
def tell(step):
    if step.lead:
        with open("steps", "a") as file:
            file.write(f"{time.time()} {step.step}\\n")
training.on_step(tell)
for x, y in training:
    time.sleep(0.01)
    training.step(((model(x)[:, 0] - y) ** 2).mean())
"""


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """A house whose training ``t`` steps in a ring of two."""
    house = House(tmp_path)
    try:
        house.cluster()
        house.daemon()
        until(house.ready)
        house.run("submit", str(house.training(SCRIPT)))
        until(lambda: any(len(event["members"]) == 2 for event in house.events("generation")), 60.0)
        until(lambda: bool(house.events("step")), 60.0)
        before = len(steps(house))
        until(lambda: len(steps(house)) > before + 10, 60.0)
        yield house
    finally:
        house.close()


def steps(house: House) -> list[tuple[float, int]]:
    """When each step was settled, as the script's own log tells it."""
    path = house.folder / "t" / "steps"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(float(at), int(number)) for at, number in (line.split() for line in lines if line.count(" ") == 1)]


def kill_daemon(house: House) -> None:
    """SIGKILL."""
    os.kill(house.listing("status")["pid"], signal.SIGKILL)
    until(lambda: not house.ready())


def test_a_ring_that_loses_no_member_misses_no_step(house: House) -> None:
    kill_daemon(house)
    killed = time.time()
    time.sleep(2.0)
    house.daemon()
    until(house.ready)
    assert time.time() - killed <= 2.0 + 3.0
    time.sleep(2.0)
    log = [entry for entry in steps(house) if entry[0] > killed - 1.0]
    assert [number for _, number in log] == list(range(log[0][1], log[-1][1] + 1))
    assert max(after - before for (before, _), (after, _) in pairwise(log)) < 1.0
    assert len(house.events("adopted")) == 1
    assert len(house.events("pilot.submitted")) == 2
    assert sorted(house.pilots().values()) == ["running", "running"]


def test_a_ring_that_lost_one_meanwhile_resumes_when_it_is_back(house: House) -> None:
    victim = house.events("generation")[-1]["members"][0]["pilot"]
    kill_daemon(house)
    snapshot = asyncio.run(LocalScheduler(house.folder / "c.sock").snapshot())
    job = next(job.id for job in snapshot.jobs if victim in job.comment)
    asyncio.run(LocalScheduler(house.folder / "c.sock").kill(job))
    time.sleep(1.0)
    held = steps(house)[-1][1]
    time.sleep(0.5)
    assert steps(house)[-1][1] == held, "a ring that lost a member goes on without being told to"
    house.daemon()
    until(house.ready)
    ready = time.time()
    until(lambda: steps(house)[-1][1] > held + 1, 10.0)
    assert next(at for at, number in steps(house) if number > held + 1) - ready <= 2.0
    numbers = [number for _, number in steps(house)]
    assert set(range(1, numbers[-1] + 1)) == set(numbers)
    assert house.events("steps.lost") == []
    told = [event["pilot"] for event in house.events("pilot.submitted")]
    assert len(told) == len(set(told))
