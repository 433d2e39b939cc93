"""An elastic batch: changed between two steps, the same at all members, recorded, and repeatable from the record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from stage import Gate, Stage

SCRIPT = Path(__file__).parent / "scripts" / "training.py"
STEPS = 150


def prefer(stage: Stage, *batches: int) -> None:
    stage.daemon.do(lambda: stage.daemon.rings.prefer("t", batches))


def settled_with(stage: Stage, gate: Gate, batch: int) -> None:
    gate.until(lambda: bool(stage.of("step")) and stage.of("step")[-1]["batch"] == batch, 0.3)


@pytest.mark.timeout(240)
def test_the_batch_follows_the_ring_and_the_run_can_be_repeated(tmp_path: Path) -> None:
    """With AdaScale, whose rates depend on every step before, also through the death of a member."""
    chosen = {"MODEL": "convnet", "BATCH": "64,160", "RULE": "adascale"}
    final = {"FINAL": str(tmp_path / "final")}
    gate = Gate(tmp_path / "gate")
    with Stage(tmp_path, SCRIPT, environment={**chosen, **final, "GATE": str(tmp_path / "gate"), "STEPS": str(STEPS)}) as stage:
        prefer(stage, 64, 96)
        first = stage.join()[0]
        settled_with(stage, gate, 64)
        stage.join()
        settled_with(stage, gate, 96)
        prefer(stage, 64, 128)
        settled_with(stage, gate, 128)
        stage.kill(first)
        settled_with(stage, gate, 64)
        gate.open(STEPS + 1)
        stage.wait(lambda: len(stage.of("step")) == STEPS)
        stage.wait(lambda: all(process.poll() == 0 for process in stage.members.values()))
        steps = stage.of("step")
    assert {step["batch"] for step in steps} == {64, 96, 128}
    record = tmp_path / "batches.json"
    record.write_text(json.dumps([step["batch"] for step in steps]))
    again = {"REPEAT": str(record), "STEPS": str(STEPS), "SEEN": str(tmp_path / "seen"), "FINAL": str(tmp_path / "again")}
    subprocess.run([sys.executable, SCRIPT], env={**os.environ, **chosen, **again}, check=True, timeout=120)
    assert [int(line) for line in (tmp_path / "seen").read_text().split()] == [index for step in steps for index in step["samples"]]
    for name, tensor in load_file(tmp_path / "again").items():
        assert torch.equal(tensor, load_file(tmp_path / "final")[name]), name
