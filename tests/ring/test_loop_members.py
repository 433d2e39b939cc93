"""The training loop computes the same whatever the members: alone, and as real processes that add up over torch.distributed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

MEMBER = Path(__file__).with_name("gloo_members.py")


def run(folder: Path, speeds: str, lost: str = "") -> list[dict[str, torch.Tensor]]:
    """Train with as many members as speeds; what each of them has in the end."""
    folder.mkdir()
    size = len(speeds.split(","))
    outs = [folder / f"{rank}.safetensors" for rank in range(size)]
    members = [
        subprocess.Popen([sys.executable, str(MEMBER), str(folder / "meet"), str(size), str(rank), str(out), speeds, lost])
        for rank, out in enumerate(outs)
    ]
    try:
        assert [member.wait(timeout=90) for member in members] == [0] * size
    finally:
        for member in members:
            member.kill()
            member.wait()
    return [load_file(out) for out in outs]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    return run(tmp_path_factory.mktemp("alone") / "run", "1")[0]


def test_members_agree_with_one_process(tmp_path: Path, alone: dict[str, torch.Tensor]) -> None:
    """Three members, one too slow for any shard, two steps lost. Crops, masks, statistics, clipping, ragged ends: as alone."""
    members = run(tmp_path / "run", "3,1,1e-6", lost="3,12")
    assert len(alone["losses"]) == 12
    for name, value in alone.items():
        for member in members:
            torch.testing.assert_close(member[name], value, rtol=1e-5, atol=1e-6)
            assert torch.equal(member[name], members[0][name]), name


def test_a_parameter_without_gradient_is_left_alone(alone: dict[str, torch.Tensor]) -> None:
    """As in plain torch: not even weight decay moves it."""
    assert torch.equal(alone["unused"], torch.ones(3))
