"""Ids of jobs and names of nodes: what may reach an argument vector, and what ``exec_vnode`` says."""

from __future__ import annotations

import re
from functools import lru_cache

from commensald.schedulers import SchedulerError

_SERVER = r"[A-Za-z0-9][A-Za-z0-9._-]*"
JOB = rf"\d{{1,15}}(?:\[\d{{0,9}}\])?\.{_SERVER}"
"""A job, an array (``9[].srv``) or a job of one (``9[3].srv``)."""

_JOB = re.compile(JOB, re.ASCII)
_SUBMITTED = re.compile(rf"\d{{1,15}}(?:\[\d{{0,9}}\])?(?:\.{_SERVER})?", re.ASCII)
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_VNODE = re.compile(r"[^\s:+()=,/]+")
_ARRAY = re.compile(r"(\d+)\[(\d*)\](.*)", re.ASCII)


class WrongNameError(SchedulerError):
    """A name that PBS would not give to a node or a job."""


def job_id(text: str) -> str:
    """``text``, if it is a job's id. Raises WrongNameError."""
    if not _JOB.fullmatch(text):
        raise WrongNameError("not a job id", text[:300])
    return text


def array_of(text: str) -> str | None:
    """The array that a job belongs to (``9[3].srv``: ``9[].srv``); ``None`` for one that stands alone, or is an array itself."""
    match = _ARRAY.fullmatch(text)
    return f"{match[1]}[]{match[3]}" if match is not None and match[2] else None


def submitted_id(output: str) -> str:
    """The id in what qsub printed, the last line that is one, whatever a site's hook printed around it. Raises WrongNameError."""
    lines = (line.strip() for line in reversed(output.split("\n")))
    found = next((line for line in lines if _SUBMITTED.fullmatch(line)), None)
    if found is None:
        raise WrongNameError("qsub gave no job id", output[-500:].strip())
    return found


def node_name(text: str) -> str:
    """``text``, if it is a host's name. Raises WrongNameError."""
    if not _NODE.fullmatch(text):
        raise WrongNameError("not a node name", text[:300])
    return text


@lru_cache(maxsize=16_384)
def vnodes(text: str) -> tuple[str, ...]:
    """Vnodes of ``exec_vnode`` or ``resv_nodes``, each once: ``(n1:ncpus=4+n2:ncpus=4)+(n3:ncpus=1)``. Raises WrongNameError."""
    pieces = text.replace("(", "").replace(")", "").split("+") if text else []
    names = [piece.partition(":")[0].strip() for piece in pieces]
    wrong = next((name for name in names if not _VNODE.fullmatch(name)), None)
    if wrong is not None:
        raise WrongNameError("not a list of vnodes", text[:300])
    return tuple(dict.fromkeys(names))


@lru_cache(maxsize=16_384)
def hosts(text: str) -> tuple[str, ...]:
    """Hosts of ``exec_host``, each once: ``n1/0*4+n2/1*4``. Raises WrongNameError."""
    return tuple(dict.fromkeys(node_name(piece.partition("/")[0].strip()) for piece in text.split("+"))) if text else ()
