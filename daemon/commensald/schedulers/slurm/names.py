"""Names of nodes and ids of jobs: what may reach an argument vector."""

from __future__ import annotations

import re

from commensald.schedulers import SchedulerError

_NODE = re.compile(r"[A-Za-z0-9._-]+")
_JOB = re.compile(r"\d+(?:_\d+|_\[[0-9,%-]+\])?(?:\+\d+)?", re.ASCII)
_PARSABLE = re.compile(r"(\d+)(?:;[A-Za-z0-9._-]+)?", re.ASCII)
_SPOKEN = re.compile(r"Submitted batch job (\d+)(?: on cluster \S+)?", re.ASCII)


class WrongNameError(SchedulerError):
    """A name that Slurm would not give to a node or a job."""


def node_name(text: str) -> str:
    """``text``, if it is a node's name. Raises WrongNameError."""
    if not _NODE.fullmatch(text) or text.startswith("-"):
        raise WrongNameError("not a node name", text)
    return text


def job_id(text: str) -> str:
    """``text``, if it is a job's id (123, 123_4, 123_[4-7%2], 123+1). Raises WrongNameError."""
    if not _JOB.fullmatch(text):
        raise WrongNameError("not a job id", text)
    return text


def submitted_id(output: str) -> str:
    """The id in what ``sbatch --parsable`` printed, whatever a site's wrapper printed around it. Raises WrongNameError.

    ``123``, ``123;cluster``, or without --parsable ``Submitted batch job 123 on cluster name``; the last line that is one.
    """
    lines = [line.strip() for line in reversed(output.split("\n"))]
    for form in (_PARSABLE, _SPOKEN):
        for line in lines:
            match = form.fullmatch(line)
            if match is not None:
                return match[1]
    raise WrongNameError("sbatch gave no job id", output[-500:].strip())
