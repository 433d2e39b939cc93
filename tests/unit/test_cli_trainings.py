"""What ``commensal`` says of trainings, over a real socket; the answers are given."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from commensald import requests
from commensald.cli.commensal import commensal
from commensald.cli.lazy import run
from commensald.control import Control
from commensald.ledger import TrainingState

ROW = requests.TrainingRow(
    name="t",
    state=TrainingState.ACTIVE,
    members=1,
    starting=2,
    min_nodes=1,
    max_nodes=4,
    steps=7,
    samples=70,
    epoch=0,
    loss=0.5,
    failures=3,
    retry_in_seconds=None,
    tail="ValueError: no good",
    folder="/f",
)
STATUS = requests.StatusReport(
    version="1",
    pid=1,
    incarnation=1,
    owner="ada",
    up_seconds=1.0,
    scheduler="local",
    snapshot_age_seconds=1.0,
    frozen=None,
    draining=True,
    stopped=None,
    left_alone=(),
    nodes=1,
    open_nodes=1,
    pilots=(),
    trainings=(),
)


def told(path: Path, *words: str, row: requests.TrainingRow = ROW) -> int:
    async def serve() -> int:
        control = Control(path, lambda request: requests.Done(trainings=(row,), status=STATUS))
        await control.start()
        try:
            return await asyncio.to_thread(run, commensal, ["--socket", str(path), *words])
        finally:
            await control.close()

    return asyncio.run(serve())


def test_members_that_start_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(tmp_path / "s", "trainings") == 0
    said = capsys.readouterr().out
    assert "1 (+2 starting)" in said
    assert "ValueError: no good" in said


def test_a_save_that_failed_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told(tmp_path / "s", "trainings", row=msgspec.structs.replace(ROW, checkpoint_error="No space left on device"))
    assert "t: the last save failed: No space left on device" in capsys.readouterr().out


def test_failures_of_a_cancelled_training_are_of_no_interest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told(tmp_path / "s", "trainings", row=msgspec.structs.replace(ROW, state=TrainingState.CANCELLED))
    assert "ValueError" not in capsys.readouterr().out


@pytest.mark.parametrize(("command", "done"), [("pause", "paused"), ("resume", "resumed"), ("cancel", "cancelled")])
def test_a_change_is_said_in_one_line(command: str, done: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(tmp_path / "s", command, "t") == 0
    assert capsys.readouterr().out == f"{done} t\n"
    told(tmp_path / "s", command, "t", "--json")
    assert msgspec.json.decode(capsys.readouterr().out) == {"done": done, "training": "t"}


def test_a_drain_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, line in {(): "drained", ("--wait", "0"): "draining", ("--undo",): "nodes are taken again"}.items():
        assert told(tmp_path / "s", "drain", *words) == 0
        assert capsys.readouterr().out == f"{line}\n"
    told(tmp_path / "s", "drain", "--json")
    assert msgspec.json.decode(capsys.readouterr().out) == {"draining": True, "drained": True}


def test_who_resumes_during_a_drain_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told(tmp_path / "s", "resume", "t")
    assert capsys.readouterr().err == "note: the daemon is draining: nothing starts until 'commensal drain --undo'\n"
