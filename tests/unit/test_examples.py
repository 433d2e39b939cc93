"""The example trainings, run as a researcher runs them on a laptop."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from commensald.demo.scenario import TRAININGS, examples


@pytest.mark.parametrize("script", TRAININGS.values())
def test_it_trains_alone(script: str, tmp_path: Path) -> None:
    argv = [sys.executable, str(examples() / script), "--steps", "3"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []
