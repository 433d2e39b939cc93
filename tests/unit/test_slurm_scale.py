"""A thousand nodes and five thousand jobs are read within the limits, in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "scripts" / "bench" / "slurm_parse.py"


def test_a_large_cluster_costs_under_a_second_and_60_mb() -> None:
    done = subprocess.run([sys.executable, BENCH, "--check", "--looks", "2"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
