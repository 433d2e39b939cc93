"""Names of nodes and ids of jobs: what may reach an argument vector, and what a folded list means."""

from __future__ import annotations

import math
import re
import sys
from functools import lru_cache

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetParseError
from ClusterShell.RangeSet import RangeSetException

from commensald.schedulers import SchedulerError

MOST_NODES = 100_000
"""A longer list is no list of a cluster's nodes."""

_NODE = re.compile(r"[A-Za-z0-9._-]+")
_RANGES = r"\[\d{1,9}(?:-\d{1,9})?(?:,\d{1,9}(?:-\d{1,9})?)*\]"
_ELEMENT = re.compile(rf"(?:[A-Za-z0-9._-]|{_RANGES})+", re.ASCII)
_FOLDED = re.compile(rf"{_ELEMENT.pattern}(?:,{_ELEMENT.pattern})*", re.ASCII)
_BRACKETS = re.compile(_RANGES, re.ASCII)
_NOBODY = frozenset({"", "(null)", "None", "None assigned", "N/A"})
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


@lru_cache(maxsize=16_384)
def node_names(text: str) -> tuple[str, ...]:
    """The nodes of a folded list (``n[001-010,020],login``), in its order. Raises WrongNameError."""
    if text in _NOBODY:
        return ()
    if _NODE.fullmatch(text):
        return (text,)
    if not _FOLDED.fullmatch(text):
        raise WrongNameError("not a node list", text)
    if sum(map(_length, _ELEMENT.findall(text))) > MOST_NODES:
        raise WrongNameError("a node list of impossible length", text)
    try:
        return tuple(sys.intern(str(node)) for node in NodeSet(text, resolver=RESOLVER_NOGROUP))
    except (NodeSetParseError, RangeSetException) as error:
        raise WrongNameError("not a node list", text) from error


def _length(element: str) -> int:
    """How many nodes one element of a list stands for, before anything is unfolded."""
    brackets = (each[1:-1].split(",") for each in _BRACKETS.findall(element))
    return math.prod(sum(_width(*part.partition("-")[::2]) for part in parts) for parts in brackets)


def _width(first: str, last: str) -> int:
    return int(last) - int(first) + 1 if last else 1


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
