"""The whole house on a real Slurm, short: the bench's scenario, with bounds that a busy machine can keep too."""

from __future__ import annotations

import sys
from pathlib import Path

from installation import Installation

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts" / "bench"))
from slurm_harvest import measure, table

SECONDS = 40.0
MEDIAN_SECONDS, WORST_SECONDS = 1.5, 3.0
"""The bench asks for 1 and 2 on a machine that does nothing else."""


def test_primary_jobs_start_as_if_nobody_were_there_and_nothing_is_lost(where: Installation) -> None:
    found = measure(where, SECONDS, seed=2)
    words = table(found)
    assert found.members_max == len(where.nodes), words
    assert (found.steps_lost, found.samples_repeated, found.left_over) == (0, 0, 0), words
    assert found.felt_median <= MEDIAN_SECONDS, words
    assert found.felt_worst <= WORST_SECONDS, words
