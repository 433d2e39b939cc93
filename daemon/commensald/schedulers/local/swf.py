"""Standard Workload Format: logs of real schedulers, read as they are.

Format: 18 fields a line, ``;`` before comments, -1 for unknown (Chapin et al., JSSPP 1999; the Parallel Workloads Archive's page
"The Standard Workload Format"). Field numbers below are those of the standard, from 1. Plain or gzip, told by content.
"""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

FIELDS = 18
GZIP_MAGIC = b"\x1f\x8b"
HEADER = re.compile(r";\s*([A-Za-z]+):\s*(.*\S)")
CHECKPOINTED_PARTS = (2, 3, 4)
"""Status (field 11) of lines that repeat parts of a job which has a line of its own."""


class SwfError(Exception):
    """A log that cannot be read: where, what was expected, and what stands there."""

    def __init__(self, path: str, line: int, expected: str, text: str, count: int | None = None) -> None:
        counted = "" if count is None else f"{count}: "
        super().__init__(f"{path}:{line}: expected {expected}, found {counted}{text[:80]!r}")
        self.path, self.line, self.expected, self.text = path, line, expected, text


class SwfJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that ran; seconds, ``None`` for unknown."""

    id: int
    submit: float
    wait: float | None
    seconds: float
    processors: int
    requested_seconds: float | None
    user: int | None


class SwfLog(msgspec.Struct, frozen=True, kw_only=True):
    """A whole log, jobs in order of submission; ``nodes`` and ``processors`` are the machine's."""

    jobs: tuple[SwfJob, ...]
    nodes: int
    processors: int


def read(path: Path) -> SwfLog:
    """Read a log. Raises :class:`SwfError`, and :class:`OSError` where there is no such file."""
    return parse(_lines(path), str(path))


def parse(lines: Iterable[str], name: str) -> SwfLog:
    """Read the lines of the log called ``name``; jobs that never ran, or on an unknown number of processors, are left out."""
    header: dict[str, str] = {}
    rows: list[list[float]] = []
    number = 0
    for number, line in enumerate(lines, start=1):
        if found := HEADER.match(line):
            header.setdefault(found[1].lower(), found[2])
        elif line.strip() and not line.startswith(";"):
            rows.append(_row(line, name, number))
    jobs = sorted(_jobs(rows), key=lambda job: (job.submit, job.id))
    if not jobs:
        raise SwfError(name, number, "at least one job that ran", "none")
    nodes, processors = _machine(header, jobs)
    return SwfLog(jobs=tuple(jobs), nodes=nodes, processors=processors)


def _lines(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
    number = 0
    try:
        with gzip.open(path, "rb") if packed else path.open("rb") as file:
            for line in file:
                number += 1
                yield line.decode("utf-8", errors="replace")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SwfError(str(path), number + 1, "a whole gzip file", str(error)) from error


def _row(line: str, name: str, number: int) -> list[float]:
    fields = line.split()
    if len(fields) != FIELDS:
        raise SwfError(name, number, f"{FIELDS} fields", line.strip(), len(fields))
    return [_number(field, position, name, number) for position, field in enumerate(fields, start=1)]


def _number(field: str, position: int, name: str, number: int) -> float:
    try:
        value = float(field)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise SwfError(name, number, f"a number in field {position}", field)
    return value


def _jobs(rows: list[list[float]]) -> Iterator[SwfJob]:
    requested = _requested_field(rows)
    for row in rows:
        processors = row[4] if row[4] > 0 else row[7]
        if row[3] > 0 and processors > 0 and row[10] not in CHECKPOINTED_PARTS:
            yield SwfJob(
                id=int(row[0]),
                submit=row[1],
                wait=row[2] if row[2] >= 0 else None,
                seconds=row[3],
                processors=int(processors),
                requested_seconds=row[requested - 1] if row[requested - 1] > 0 else None,
                user=int(row[11]) if row[11] >= 0 else None,
            )


def _requested_field(rows: list[list[float]]) -> int:
    """Requested time is field 9; logs without it that fill field 6 (processor time used) have put it there (ALCF Mira)."""
    misplaced = all(row[8] < 0 for row in rows) and any(row[5] > 0 for row in rows)
    return 6 if misplaced else 9


def _machine(header: Mapping[str, str], jobs: list[SwfJob]) -> tuple[int, int]:
    """Nodes and processors by the header; a log without it has a machine as large as its largest job."""
    nodes, processors = _leading_int(header.get("maxnodes")), _leading_int(header.get("maxprocs"))
    processors = processors or nodes or max(job.processors for job in jobs)
    return nodes or processors, processors


def _leading_int(text: str | None) -> int | None:
    found = re.match(r"\d+", text or "")
    return int(found[0]) or None if found else None
