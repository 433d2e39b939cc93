"""The reconciling loop on a real embedded cluster, whose pilots wait for a coordinator that gives them nothing."""

from __future__ import annotations

import asyncio
import os
import pwd
import subprocess
import sys
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from commensald import requests
from commensald.config import Config
from commensald.coordinator import TrainingStatus
from commensald.coordinator.pace import Seen
from commensald.keys import public_key
from commensald.ledger import Ledger, TrainingState
from commensald.reconcile import ours
from commensald.schedulers import PilotSpec, SchedulerError
from commensald.schedulers.local.client import LocalScheduler
from commensald.service import Service
from commensald.strict import InputError
from commensald.trainings import TrainingSpec

OWNER = pwd.getpwuid(os.getuid()).pw_name


class Nobody:
    """Rings in which nobody ever arrives; keeps what it was told last."""

    def __init__(self) -> None:
        self.assigned: dict[str, frozenset[str]] = {}
        self.admitted: set[str] = set()
        self.stopped: list[tuple[str, str]] = []
        self.greets = True

    async def start(self) -> None: ...
    async def close(self) -> None: ...

    def admit(self, spec: TrainingSpec, public_key: str) -> None:
        self.admitted.add(spec.name)

    def retire(self, training: str) -> None:
        self.admitted.discard(training)

    def assign(self, nodes: Mapping[str, frozenset[str]]) -> None:
        self.assigned = dict(nodes)

    def deadline(self, pilot: str, seconds: float) -> None: ...
    def gone(self, pilot: str) -> None: ...

    def departed_seconds(self) -> float:
        return 1e9

    def greeted(self, pilot: str) -> bool:
        return self.greets

    def stop(self, training: str, reason: str) -> None:
        self.stopped.append((training, reason))

    def resume(self, training: str) -> None: ...

    def status(self, training: str) -> TrainingStatus:
        return TrainingStatus(training=training, generation=None, members=())

    def batches(self, training: str) -> None: ...

    def pace(self, training: str) -> Seen:
        return Seen()

    def prefer(self, training: str, batches: tuple[int, ...]) -> None: ...

    def nodes(self, training: str) -> frozenset[str]:
        return frozenset()


class Forgetful(LocalScheduler):
    """The cluster behind a line that loses every answer to a submission."""

    async def submit(self, spec: PilotSpec) -> str:
        await super().submit(spec)
        raise SchedulerError("no answer in time")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "cluster.sock"
    command = [sys.executable, "-c", "from commensald.cli.daemon import main; main()", "local-cluster", "--socket", str(path)]
    process = subprocess.Popen([*command, "--nodes", "4", "--grace", "2"])
    yield path
    process.terminate()
    process.wait(timeout=20)


def config(folder: Path) -> Config:
    pilots = folder / "pilots"
    pilots.mkdir(exist_ok=True)
    public_key(pilots)
    given = {
        "daemon": {"state": str(folder / "state"), "poll_seconds": 0.05},
        "pilots": {"folder": str(pilots)},
        "backoff": {"first_seconds": 1.0, "attempts": 2},
        "limits": {"kill_switch": str(folder / "stop")},
    }
    return msgspec.convert(given, Config)


def spec(folder: Path, most: int = 3) -> TrainingSpec:
    (folder / "train.py").touch()
    return TrainingSpec(name="t", script=str(folder / "train.py"), folder=str(folder), owner=OWNER, max_nodes=most)


async def until(what: Callable[[], Awaitable[bool]], seconds: float = 15.0) -> None:
    async with asyncio.timeout(seconds):
        while not await what():
            await asyncio.sleep(0.02)


async def running(scheduler: LocalScheduler) -> set[str]:
    return set(ours(await scheduler.snapshot(), OWNER))


async def live(
    folder: Path, scheduler: LocalScheduler, then: Callable[[Service, Nobody], Awaitable[None]], configured: Config | None = None
) -> None:
    """One life of a daemon."""
    await scheduler.wait_ready(15)
    ledger, rings, stop = Ledger(folder / "state"), Nobody(), asyncio.Event()
    service = Service(configured or config(folder), ledger, scheduler, rings, OWNER, lambda kind, **fields: None)
    service.start()
    loop = asyncio.create_task(service.run(stop))
    try:
        await then(service, rings)
    finally:
        stop.set()
        await loop
        ledger.close()


def test_fills_nodes_keeps_them_over_a_restart_and_gives_them_back(tmp_path: Path, cluster: Path) -> None:
    scheduler, before = LocalScheduler(cluster), set[str]()

    async def first(service: Service, rings: Nobody) -> None:
        service.answer(requests.Submit(spec=spec(tmp_path), public_key="k"))
        with pytest.raises(InputError, match="already active"):
            service.answer(requests.Submit(spec=spec(tmp_path), public_key="k"))
        await until(lambda: truth(len(rings.assigned.get("t", ())) == 3))
        before.update(await running(scheduler))

    async def second(service: Service, rings: Nobody) -> None:
        await until(lambda: truth(len(rings.assigned.get("t", ())) == 3))
        assert await running(scheduler) == before
        service.answer(requests.Pause(training="t"))
        assert ("t", "paused") in rings.stopped
        await until(lambda: nobody(scheduler))
        assert service.answer(requests.Trainings()).trainings[0].state is TrainingState.PAUSED

    async def both() -> None:
        await live(tmp_path, scheduler, first)
        await live(tmp_path, scheduler, second)

    asyncio.run(both())
    assert len(before) == 3


async def truth(value: bool) -> bool:
    return value


async def nobody(scheduler: LocalScheduler) -> bool:
    return not await running(scheduler)


def test_a_submission_without_an_answer_is_looked_up_and_not_repeated(tmp_path: Path, cluster: Path) -> None:
    async def then(service: Service, rings: Nobody) -> None:
        service.answer(requests.Submit(spec=spec(tmp_path), public_key="k"))
        await until(lambda: truth(len(rings.assigned.get("t", ())) == 3))
        await asyncio.sleep(0.5)
        status = service.answer(requests.Status()).status
        assert status is not None
        assert {each.uuid for each in status.pilots} == await running(LocalScheduler(cluster))
        assert len(status.pilots) == 3
        assert all(each.job is not None for each in status.pilots)

    asyncio.run(live(tmp_path, Forgetful(cluster), then))


def test_a_pilot_that_the_ledger_does_not_know_is_cancelled(tmp_path: Path, cluster: Path) -> None:
    scheduler = LocalScheduler(cluster)

    async def then(service: Service, rings: Nobody) -> None:
        await scheduler.submit(PilotSpec(uuid=str(uuid.uuid4()), argv=("sleep", "600"), folder=str(tmp_path)))
        await until(lambda: nobody(scheduler))

    asyncio.run(live(tmp_path, scheduler, then))


def test_the_kill_switch_stops_everything_until_it_is_removed(tmp_path: Path, cluster: Path) -> None:
    scheduler, switch = LocalScheduler(cluster), tmp_path / "stop"

    async def then(service: Service, rings: Nobody) -> None:
        service.answer(requests.Submit(spec=spec(tmp_path), public_key="k"))
        await until(lambda: truth(len(rings.assigned.get("t", ())) == 3))
        switch.touch()
        await until(lambda: nobody(scheduler))
        status = service.answer(requests.Status()).status
        assert status is not None
        assert status.stopped == f"limits.kill_switch: {switch} exists"
        assert rings.stopped == [("t", status.stopped)]
        switch.unlink()
        await until(lambda: truth(len(rings.assigned.get("t", ())) == 3))

    asyncio.run(live(tmp_path, scheduler, then))


def test_a_node_on_which_pilots_die_at_once_is_left_alone(tmp_path: Path, cluster: Path) -> None:
    async def then(service: Service, rings: Nobody) -> None:
        rings.greets = False
        service.answer(requests.Submit(spec=spec(tmp_path), public_key="k"))
        await until(lambda: truth(len(left_alone(service)) == 4))
        await asyncio.sleep(0.5)
        status = service.answer(requests.Status()).status
        assert status is not None
        assert status.pilots == ()

    sound = config(tmp_path)
    broken = msgspec.structs.replace(sound, pilots=msgspec.structs.replace(sound.pilots, python="/bin/false"))
    asyncio.run(live(tmp_path, LocalScheduler(cluster), then, broken))


def left_alone(service: Service) -> tuple[str, ...]:
    status = service.answer(requests.Status()).status
    assert status is not None
    return status.left_alone


def test_a_scheduler_that_is_away_freezes_decisions(tmp_path: Path, cluster: Path) -> None:
    scheduler = LocalScheduler(cluster)

    async def then(service: Service, rings: Nobody) -> None:
        service.answer(requests.Submit(spec=spec(tmp_path), public_key="k"))
        await until(lambda: truth(len(rings.assigned.get("t", ())) == 3))
        await scheduler.shutdown()
        await until(lambda: truth(service.frozen() is not None))
        assert len(rings.assigned["t"]) == 3
        service.answer(requests.Pause(training="t"))
        await asyncio.sleep(0.3)
        assert len(rings.assigned["t"]) == 3

    asyncio.run(live(tmp_path, scheduler, then))


def test_a_failing_script_backs_off_and_is_given_up(tmp_path: Path, cluster: Path) -> None:
    async def then(service: Service, rings: Nobody) -> None:
        service.answer(requests.Submit(spec=spec(tmp_path), public_key="k"))
        await until(lambda: truth(len(rings.assigned.get("t", ())) == 3))
        service.training_failed("t", "Traceback\nValueError: no good")
        await until(lambda: truth(rings.assigned["t"] == frozenset()))
        (row,) = service.answer(requests.Trainings()).trainings
        assert (row.state, row.failures, row.tail) == (TrainingState.ACTIVE, 1, "Traceback\nValueError: no good")
        assert row.retry_in_seconds is not None
        service.training_failed("t", "ValueError: that of another member")
        assert service.answer(requests.Trainings()).trainings[0].failures == 1
        await until(lambda: truth(len(rings.assigned.get("t", ())) == 1))
        service.training_failed("t", "ValueError: no good")
        assert service.answer(requests.Trainings()).trainings[0].state is TrainingState.FAILED
        service.answer(requests.Resume(training="t"))
        await until(lambda: truth(len(rings.assigned.get("t", ())) == 3))

    asyncio.run(live(tmp_path, LocalScheduler(cluster), then))
