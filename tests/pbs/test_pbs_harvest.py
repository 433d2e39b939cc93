"""The whole house under PBS, short: the bench's scenario, with bounds that a busy machine can keep too. Runs on a real PBS as well."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from pbs_commands import Pbs
from pbs_house import PbsHouse, scratch

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts" / "bench"))
from pbs_harvest import measure, table

SECONDS = 36.0
MEDIAN_SECONDS = 2.0
"""The bench asks for 1 on a machine that does nothing else."""


@pytest.mark.timeout(300)
def test_primary_jobs_start_as_if_nobody_were_there_and_nothing_is_lost(any_pbs: Pbs) -> None:
    bind = os.environ.get("PBS_TEST_BIND") if os.environ.get("PBS_TEST") == "real" else "127.0.0.1"
    with PbsHouse(scratch(), any_pbs, bind) as house:
        found = measure(house, SECONDS, seed=2)
    assert found.sound, table(found)
    assert found.delay_median <= MEDIAN_SECONDS, table(found)
