"""Newcomers that come one upon the other while a large state is still being moved to the first of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage import Stage

SCRIPT = Path(__file__).parents[1] / "slurm" / "scripts" / "wide.py"


@pytest.mark.parametrize("transport", ["mpi", "gloo"])
def test_all_of_them_get_into_the_ring(tmp_path: Path, transport: str) -> None:
    with Stage(tmp_path, SCRIPT, environment={"COMMENSAL_TRANSPORT": transport}) as stage:
        stage.join()
        stage.wait_ring(1)
        stage.join(3)
        stage.wait_ring(4)
        settled = [step["step"] for step in stage.of("step")]
    assert settled == list(range(1, len(settled) + 1))
