"""Logs of idle nodes: events as of Summit, polls of sinfo as of Prometheus. Plain or gzip, told by content."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from ClusterShell.NodeSet import NodeSet, NodeSetParseError

from commensald.replay.traces import Log
from commensald.strict import InputError

GZIP_MAGIC = b"\x1f\x8b"
HEADER = "unix_time,node,idle"
SEPARATOR = "----"
PILOTS = "invokers:"
"""Before the nodes that held a pilot job."""
SINFO_FIELDS = 6
"""PARTITION AVAIL TIMELIMIT NODES STATE NODELIST."""

Line = tuple[int, str]


def idle_events(path: Path) -> Log:
    """A log of lines ``unix_time,node,idle`` (1: became idle, 0: taken), ascending by time. Raises InputError at the first bad line."""
    events: list[tuple[float, str, bool]] = []
    last = -math.inf
    for number, line in lines(path):
        if line == HEADER:
            continue
        at, _, rest = line.partition(",")
        node, _, idle = rest.partition(",")
        if not node or idle not in ("0", "1"):
            raise unreadable(path, number, f"{HEADER} with idle 0 or 1", line)
        now = _time(path, number, at)
        if now < last:
            raise unreadable(path, number, f"a time not before {last:.0f}", line)
        events.append((last := now, node, idle == "1"))
    return _log(path, events, last)


def sinfo_log(path: Path) -> Log:
    """A log of polls: a time, ``invokers:`` and the nodes that hold a pilot, lines of ``sinfo`` with ``idle`` in them, ``----``.

    A node was to be had when it held a pilot or was plainly ``idle``: ``idle~``, ``idle#``, ``idle%`` and ``idle*`` are powered
    down, powering up or down, not responding, and could not start anything at once. Raises InputError at the first bad line.
    """
    events: list[tuple[float, str, bool]] = []
    pool: frozenset[str] = frozenset()
    last = -math.inf
    for at, found in _polls(path):
        events += [(at, node, True) for node in sorted(found - pool)] + [(at, node, False) for node in sorted(pool - found)]
        pool, last = found, at
    return _log(path, events, last)


def node_order(path: Path) -> tuple[str, ...]:
    """Node names, one a line. Raises InputError."""
    return tuple(line for _, line in lines(path))


def lines(path: Path) -> Iterator[Line]:
    """(number, text) of each line that is not empty. Raises InputError when the file cannot be read."""
    number = 0
    try:
        with path.open("rb") as file:
            packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        with gzip.open(path, "rt", encoding="utf-8") if packed else path.open(encoding="utf-8") as text:
            for number, line in enumerate(text, start=1):
                if line := line.strip():
                    yield number, line
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (EOFError, UnicodeDecodeError, zlib.error) as error:
        raise InputError(f"{path}:{number + 1}: expected text, plain or gzip: {error}") from error


def unreadable(path: Path, number: int, expected: str, found: str) -> InputError:
    """The error for a line that is not what it should be."""
    return InputError(f"{path}:{number}: expected {expected}, found {found[:80]!r}")


def _log(path: Path, events: list[tuple[float, str, bool]], ends: float) -> Log:
    if not events or events[0][0] >= ends:
        raise InputError(f"{path}: expected events at two instants at least, found {len(events)} events")
    return Log(begins=events[0][0], ends=ends, events=events)


def _time(path: Path, number: int, text: str) -> float:
    try:
        at = float(text)
    except ValueError:
        at = math.nan
    if not math.isfinite(at):
        raise unreadable(path, number, "a unix time", text)
    return at


def _polls(path: Path) -> Iterator[tuple[float, frozenset[str]]]:
    """(time, nodes to be had) of each poll; the last one counts without its separator."""
    at, found, last = None, frozenset[str](), -math.inf
    for number, line in lines(path):
        if line == SEPARATOR:
            if at is not None:
                yield at, found
            at = None
        elif at is None:
            at, found = _time(path, number, line), frozenset()
            if at < last:
                raise unreadable(path, number, f"a time not before {last:.0f}", line)
            last = at
        else:
            found |= _idle(path, number, line)
    if at is not None:
        yield at, found


def _idle(path: Path, number: int, line: str) -> frozenset[str]:
    if line.startswith(PILOTS):
        return _fold(path, number, line.removeprefix(PILOTS).strip())
    fields = line.split()
    if len(fields) != SINFO_FIELDS:
        raise unreadable(path, number, f"'{PILOTS} NODES', {SINFO_FIELDS} fields of sinfo or '{SEPARATOR}'", line)
    return _fold(path, number, fields[5]) if fields[4] == "idle" else frozenset()


def _fold(path: Path, number: int, text: str) -> frozenset[str]:
    try:
        return _nodes(text)
    except NodeSetParseError as error:
        raise unreadable(path, number, "a list of nodes", text) from error


@lru_cache(maxsize=1024)
def _nodes(text: str) -> frozenset[str]:
    return frozenset(str(node) for node in NodeSet(text))
