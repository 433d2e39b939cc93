"""Folded lists of nodes, ``n[001-010,020],login``: as Slurm prints them and administrators write them."""

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
"""Slurm's words for an empty list."""


class NodeListError(SchedulerError):
    """No list of nodes."""


@lru_cache(maxsize=16_384)
def node_names(text: str) -> tuple[str, ...]:
    """The nodes of a folded list (``n[001-010,020],login``), in its order. Raises NodeListError."""
    if text in _NOBODY:
        return ()
    if _NODE.fullmatch(text):
        return (text,)
    if not _FOLDED.fullmatch(text):
        raise NodeListError("not a node list", text)
    if sum(map(_length, _ELEMENT.findall(text))) > MOST_NODES:
        raise NodeListError("a node list of impossible length", text)
    try:
        return tuple(sys.intern(str(node)) for node in NodeSet(text, resolver=RESOLVER_NOGROUP))
    except (NodeSetParseError, RangeSetException) as error:
        raise NodeListError("not a node list", text) from error


def _length(element: str) -> int:
    """How many nodes one element of a list stands for, before anything is unfolded."""
    brackets = (each[1:-1].split(",") for each in _BRACKETS.findall(element))
    return math.prod(sum(_width(*part.partition("-")[::2]) for part in parts) for parts in brackets)


def _width(first: str, last: str) -> int:
    return int(last) - int(first) + 1 if last else 1
