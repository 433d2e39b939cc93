"""Command lines of Slurm, built whole: argument vectors and an environment, never a shell.

Nothing of the caller's environment gets through but where Slurm's configuration is: SQUEUE_*, SINFO_*, SBATCH_* and SLURM_* of a user or
of a job we may run in would change what the commands do and print.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from commensald.cluster import PILOT_TAG
from commensald.schedulers import PilotSpec
from commensald.schedulers.slurm.names import job_id, node_name
from commensald.schedulers.slurm.times import MINUTE, whole_minutes

WARNING_SECONDS = 60
"""How long before its end a pilot is told (``--signal``); Slurm may be up to a minute early (sbatch(1))."""
SHORT_SECONDS = 240.0
"""A pilot that is not to run for longer is told of preemption only, else it would be told to end as it begins."""
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

_GONE = ("Invalid job id specified", "already completing or completed", "Job has already finished")

SHOW = ("scontrol", "--oneliner", "--all", "--local", "show")
JOBS = (*SHOW, "job")
NODES = (*SHOW, "node")
PARTITIONS = (*SHOW, "partition")
RESERVATIONS = (*SHOW, "reservation")
CONFIG = ("scontrol", "show", "config")
SDIAG = ("sdiag",)


def environment(path: str | None, slurm_conf: str | None, time_format: str | None = None) -> dict[str, str]:
    """What a command of Slurm's gets: plain language, the configuration's place, and the format of times where it prints any."""
    given = {"PATH": search_path(path), "LC_ALL": "C.UTF-8"}
    conf = slurm_conf or os.environ.get("SLURM_CONF")
    return given | ({"SLURM_CONF": conf} if conf else {}) | ({"SLURM_TIME_FORMAT": time_format, "TZ": "UTC0"} if time_format else {})


def search_path(path: str | None) -> str:
    """Where Slurm's commands are looked for, by us and by what runs in a pilot."""
    return PATH if path is None else f"{path}:{PATH}"


def time_format(mark: str) -> str:
    """For SLURM_TIME_FORMAT: epoch seconds and a mark; Slurm takes at most 31 characters (``slurm_make_time_str``)."""
    return f"%s{mark}"


def sbatch(spec: PilotSpec, seconds: float) -> list[str]:
    """Submits one pilot for so long; its script comes on stdin. Raises WrongNameError.

    ``--export=ALL`` exports the clean :func:`environment` that sbatch itself gets; anything else makes 22.05 run the user's login profile.
    ``--propagate=NONE``: a login node's resource limits (memory, locked memory, open files) are not meant for nodes.
    ``--no-requeue``: a preempted pilot is gone, on every version, instead of pending for a node that somebody needs.
    """
    folder = spec.folder.replace("%", "%%")
    chosen = {"--partition": spec.partition, "--qos": spec.qos, "--account": spec.account}
    return [
        "sbatch",
        "--parsable",
        "--job-name=commensal",
        f"--comment={PILOT_TAG}{spec.uuid}",
        "--nodes=1",
        "--ntasks=1",
        "--exclusive",
        "--mem=0",
        f"--time={whole_minutes(seconds)}",
        f"--signal=USR1@{WARNING_SECONDS if seconds >= SHORT_SECONDS else 0}",
        "--open-mode=append",
        "--no-requeue",
        "--export=ALL",
        "--propagate=NONE",
        f"--chdir={spec.folder}",
        f"--output={folder}/{spec.uuid}.log",
        *([] if spec.node is None else [f"--nodelist={node_name(spec.node)}"]),
        *(f"{option}={value}" for option, value in chosen.items() if value is not None),
    ]


def limit_seconds(asked: float | None, most: float | None, longest: float) -> float:
    """The finite time limit to submit with: what was asked for, what the partition allows, and ``longest`` at the most."""
    return max(min(each for each in (asked, most, longest) if each is not None), MINUTE)


def scancel(ids: Sequence[str]) -> list[str]:
    """Ends these jobs. Raises WrongNameError."""
    return ["scancel", *(job_id(each) for each in ids)]


def only_gone(errors: str) -> bool:
    """Whether all that scancel complained of is jobs that have ended already."""
    lines = [line for line in errors.split("\n") if line.strip()]
    return bool(lines) and all(any(word in line for word in _GONE) for line in lines)


def own_jobs(owner: str) -> list[str]:
    """Id and comment of the owner's jobs, one a line."""
    return ["squeue", "--noheader", "--states=all", f"--user={owner}", "--format=%A|%k"]


def tagged(output: str, uuid: str) -> str | None:
    """The id of the job with a pilot's tag in the output of :func:`own_jobs`."""
    rows = (line.partition("|") for line in output.split("\n"))
    return next((job_id(each.strip()) for each, _, comment in rows if comment.strip() == PILOT_TAG + uuid), None)


def batches(ids: Iterable[str], most: int = 200) -> list[list[str]]:
    """The ids in lots that fit on a command line."""
    every = list(ids)
    return [every[at : at + most] for at in range(0, len(every), most)]
