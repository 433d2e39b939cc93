"""The coordinator's shell without a network: trainings that come, go and come back."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from commensal.checkpoint import SaveError
from commensal.messages import Generation
from commensal.ring.alone import Alone
from commensald.coordinator import GenerationRecord, Limits
from commensald.coordinator.membership import Membership
from commensald.coordinator.server import Coordinator
from commensald.keys import public_key
from commensald.ledger import Ledger
from commensald.strict import InputError
from commensald.trainings import TrainingSpec


def spec(folder: Path) -> TrainingSpec:
    return TrainingSpec(name="t", script="t.py", folder=str(folder), python=sys.executable)


def coordinator(folder: Path, ledger: Ledger) -> Coordinator:
    pilots = folder / "pilots"
    pilots.mkdir()
    return Coordinator(
        folder=folder, ledger=ledger, emit=lambda kind, **fields: None, limits=Limits(), bind="127.0.0.1", pilot_folder=pilots
    )


def test_generations_go_on_counting_when_a_training_comes_back_in_the_same_life() -> None:
    kept = GenerationRecord(training="t", generation=Generation(3, 7), members=("a",))
    assert Membership("t", 3, Limits(), 0.0, kept).number == 7
    assert Membership("t", 4, Limits(), 0.0, kept).number == 0


def test_a_folder_that_is_away_is_said_and_tried_again(tmp_path: Path) -> None:
    async def play() -> None:
        ledger = Ledger(tmp_path / "state")
        rings = coordinator(tmp_path, ledger)
        await rings.start()
        folder = tmp_path / "training"
        folder.mkdir()
        key = public_key(folder)
        away = folder.rename(tmp_path / "away")
        with pytest.raises(InputError, match="No such file"):
            rings.admit(spec(folder), key)
        away.rename(folder)
        rings._courses["t"].announce_at = 0.0
        for _ in range(100):
            await asyncio.sleep(0.02)
            if (folder / "coordinator.json").exists():
                break
        assert (folder / "coordinator.json").exists()
        await rings.close()
        ledger.close()

    asyncio.run(play())


def test_nobody_else_trains_in_a_folder_until_its_training_is_over(tmp_path: Path) -> None:
    async def play() -> None:
        ledger = Ledger(tmp_path / "state")
        rings = coordinator(tmp_path, ledger)
        await rings.start()
        folder = tmp_path / "training"
        folder.mkdir()
        rings.admit(spec(folder), public_key(folder))
        with pytest.raises(SaveError, match=r"belongs to training t, coordinated from tcp://127.0.0.1:\d+: cancel it"):
            Alone(folder, 300.0)
        await rings.close()
        with pytest.raises(SaveError, match="belongs to training t"):
            Alone(folder, 300.0)  # its ring may step on without a daemon
        rings.retire("t")
        Alone(folder, 300.0)
        ledger.close()

    asyncio.run(play())


def test_what_is_no_announcement_keeps_nobody_out(tmp_path: Path) -> None:
    (tmp_path / "coordinator.json").write_text("{")
    Alone(tmp_path, 300.0)
