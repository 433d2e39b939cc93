"""Membership changes nothing: the same steps on one process and on a ring that grows, shrinks and loses a member."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from stage import Gate, Stage

from commensald.coordinator import Limits

SCRIPT = Path(__file__).parent / "scripts" / "training.py"
STEPS = 200


def alone(folder: Path, chosen: dict[str, str]) -> tuple[dict[str, torch.Tensor], list[int]]:
    """Parameters after STEPS steps of one process, and the samples it fetched, in order."""
    folder.mkdir()
    environment = {**os.environ, **chosen, "FINAL": str(folder / "final"), "SEEN": str(folder / "seen")}
    subprocess.run([sys.executable, SCRIPT], env=environment, check=True, timeout=120)
    return load_file(folder / "final"), [int(line) for line in (folder / "seen").read_text().split()]


def reach(stage: Stage, gate: Gate, size: int) -> None:
    """Go on slowly until a ring of ``size`` is agreed on, which may take several rings, then until it has settled a step."""
    gate.until(lambda: bool(stage.of("generation")) and len(stage.of("generation")[-1]["members"]) == size, 0.5)
    generation = stage.of("generation")[-1]["generation"]
    gate.until(lambda: any(step["generation"] == generation for step in stage.of("step")), 0.03)


@pytest.mark.parametrize(("model", "transport", "deterministic"), [("mlp", "mpi", False), ("convnet", "mpi", True), ("mlp", "gloo", True)])
@pytest.mark.timeout(300)
def test_membership_changes_nothing(model: str, transport: str, deterministic: bool, tmp_path: Path) -> None:
    chosen = {"MODEL": model, "STEPS": str(STEPS), "DETERMINISTIC": str(int(deterministic))}
    expected, seen = alone(tmp_path / "alone", chosen)
    gate = Gate(tmp_path / "gate")
    final = tmp_path / "final"
    environment = {**chosen, "FINAL": str(final), "GATE": str(tmp_path / "gate"), "COMMENSAL_TRANSPORT": transport}
    with Stage(tmp_path, SCRIPT, Limits(form_timeout=20.0), environment) as stage:
        first = stage.join()[0]
        reach(stage, gate, 1)
        for size in (2, 3):
            stage.join()
            reach(stage, gate, size)
        stage.kill(first)
        reach(stage, gate, 2)
        stage.join(2)
        reach(stage, gate, 4)
        keep = stage.of("generation")[-1]["members"][0]["member"]
        stage.daemon.do(lambda: stage.daemon.rings.assign({"t": frozenset({f"node-{keep}"})}))
        reach(stage, gate, 1)
        assert stage.of("step")[-1]["step"] < STEPS
        gate.open(STEPS + 1)
        assert stage.ended(keep) == 0
        stage.wait(lambda: len(stage.of("step")) == STEPS)
        steps = stage.of("step")
    assert [step["step"] for step in steps] == list(range(1, STEPS + 1))
    assert stage.of("steps.lost") == []
    assert [index for step in steps for index in step["samples"]] == seen
    for name, tensor in load_file(final).items():
        distance = (tensor.double() - expected[name].double()).norm() / expected[name].double().norm().clamp(min=1e-12)
        assert distance <= (0 if deterministic else 1e-5), f"{name}: {distance:.2e}"
