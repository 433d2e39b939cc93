"""Where a task stands in its job and array, by what the scheduler tells it. Pure.

Slurm: srun(1), sbatch(1), OUTPUT ENVIRONMENT VARIABLES. PBS: qsub(1B), ENVIRONMENT VARIABLES; it does not tell the lowest index of an
array, so the job script does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """``pilot`` names this task and this start of it; ``first`` is the one with the coordinator; ``array``: its job is one of several."""

    pilot: str
    first: bool
    array: bool


def place(environment: Mapping[str, str], pid: int, lowest: str | None = None, index: str | None = None) -> Place:
    """Outside any job the process is first and alone. ``index``: of this job in its array, ``lowest``: of the array's first one (PBS)."""
    if "PBS_JOBID" in environment:
        return _in_pbs(environment, lowest or None, index or None)
    job, task = environment.get("SLURM_JOB_ID", f"p{pid}"), environment.get("SLURM_PROCID", "0")
    index, lowest = environment.get("SLURM_ARRAY_TASK_ID"), environment.get("SLURM_ARRAY_TASK_MIN")
    return Place(
        pilot=f"{job}.{task}.{environment.get('SLURM_RESTART_COUNT') or 0}",
        first=task == "0" and index == lowest,
        array=index is not None,
    )


def node(environment: Mapping[str, str], hosts: Sequence[str]) -> str | None:
    """The node of a task of PBS, from the lines of its node file; ``None``: it knows it by other means."""
    number, each = int(environment.get("PBS_NODENUM", "0")), list(dict.fromkeys(hosts))
    return each[number].partition(".")[0] if number < len(each) else None


def launcher_environment(environment: Mapping[str, str], hosts: Sequence[str] = ()) -> dict[str, str]:
    """What the launcher gets: a requeued pilot of the daemon ends at once, a requeued plain job goes on."""
    here = node(environment, hosts)
    kept = {name: value for name, value in environment.items() if name != "SLURM_RESTART_COUNT"}
    return kept if here is None else {"COMMENSAL_NODE": here, **kept}


def _in_pbs(environment: Mapping[str, str], lowest: str | None, index: str | None) -> Place:
    """PBS counts no starts, but each has a cookie of its own; it is a secret of MOM's, so it is not told as it is."""
    job, task = environment["PBS_JOBID"].partition(".")[0], environment.get("PBS_NODENUM", "0")
    start = hashlib.sha256(environment.get("PBS_JOBCOOKIE", "").encode()).hexdigest()[:8]
    pilot = f"{job.replace('[', '_').replace(']', '')}.{task}.{start}"
    return Place(pilot=pilot, first=task == "0" and index == lowest, array=index is not None)
