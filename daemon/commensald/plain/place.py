"""Where a task stands in its job and array, by what Slurm tells it (srun(1), sbatch(1), OUTPUT ENVIRONMENT VARIABLES). Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """``pilot`` names this task and this start of it; ``first`` is the one with the coordinator; ``array``: its job is one of several."""

    pilot: str
    first: bool
    array: bool


def place(environment: Mapping[str, str], pid: int) -> Place:
    """Outside any job the process is first and alone."""
    job, task = environment.get("SLURM_JOB_ID", f"p{pid}"), environment.get("SLURM_PROCID", "0")
    index, lowest = environment.get("SLURM_ARRAY_TASK_ID"), environment.get("SLURM_ARRAY_TASK_MIN")
    return Place(
        pilot=f"{job}.{task}.{environment.get('SLURM_RESTART_COUNT') or 0}",
        first=task == "0" and index == lowest,
        array=index is not None,
    )


def launcher_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What the launcher gets: a requeued pilot of the daemon ends at once, a requeued plain job goes on."""
    return {name: value for name, value in environment.items() if name != "SLURM_RESTART_COUNT"}
