"""Records: what PBS says of one job, node, queue, reservation or server, attribute by attribute, in its own words.

JSON and text both give records, so that everything behind them is written once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec

from commensald.schedulers import SchedulerError

Record = Mapping[str, str]

_COUNT = re.compile(r"\d{1,15}", re.ASCII)
_INTEGER = re.compile(r"-?\d{1,15}", re.ASCII)
_SIZE = re.compile(r"(\d{1,15})([kmgtp]?)([bw]?)", re.ASCII | re.IGNORECASE)
_MIB = {"": 2.0**-20, "k": 2.0**-10, "m": 1.0, "g": 2.0**10, "t": 2.0**20, "p": 2.0**30}
WORD_BYTES = 8


class UnreadableError(SchedulerError):
    """An answer of PBS's that is not whole, or not of the form that we know."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as far as it can be read: records by name, in the answer's order."""

    records: Mapping[str, Record]
    repaired: tuple[str, ...] = ()
    """Names whose record was damaged, and of which all that matters could be read all the same."""
    unreadable: tuple[str, ...] = ()
    """Names of which nothing is known but that they are there; they have no record."""
    whole: bool = True
    """Whether the answer came to its end: what a cut one does not show may still be there."""


class Part(msgspec.Struct, frozen=True):
    """One record of an answer. ``tail`` stands behind it; ``None`` where nobody can say where it ends."""

    name: str
    record: Record | None
    tail: str | None = None
    damaged: bool = False


def together(parts: Sequence[Part], whole: bool) -> Reading:
    """All parts; one that is there twice and not the same is unreadable."""
    records: dict[str, Record] = {}
    unreadable: set[str] = set()
    for part in parts:
        if part.record is None or records.get(part.name, part.record) != part.record:
            unreadable.add(part.name)
        else:
            records[part.name] = part.record
    return Reading(
        records={name: record for name, record in records.items() if name not in unreadable},
        repaired=tuple(dict.fromkeys(part.name for part in parts if part.damaged and part.name not in unreadable)),
        unreadable=tuple(dict.fromkeys(part.name for part in parts if part.name in unreadable)),
        whole=whole,
    )


def cut(text: str, heading: re.Pattern[str]) -> list[tuple[str, str]]:
    """The parts that begin with a ``heading``, by the name that is its first group; what stands before the first one is left out."""
    begins = [*heading.finditer(text), None]
    return [(here[1], text[here.end() : there.start() if there else len(text)]) for here, there in pairwise(begins) if here is not None]


def need(record: Record, key: str) -> str:
    """The value of ``key``. Raises UnreadableError."""
    if key not in record:
        raise UnreadableError(f"a record without {key}", " ".join(f"{name}={value}" for name, value in record.items())[:300])
    return record[key]


def count(text: str) -> int:
    """A whole number. Raises UnreadableError."""
    if not _COUNT.fullmatch(text):
        raise UnreadableError("not a number", text[:300])
    return int(text)


def integer(text: str) -> int:
    """A whole number of either sign, 0 for what is none: for what only orders or is absent."""
    return int(text) if _INTEGER.fullmatch(text) else 0


def mebibytes(text: str) -> int:
    """A size with PBS's suffixes (``24683656kb``, ``24gb``, ``512mw``), rounded down. Raises UnreadableError."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise UnreadableError("not a size", text[:300])
    return int(int(match[1]) * _MIB[match[2].lower()] * (WORD_BYTES if match[3].lower() == "w" else 1))


def flag(record: Record, key: str) -> bool:
    """Whether PBS says ``True`` (as its clients do, in any case); a missing one is false."""
    return record.get(key, "False").lower() in ("true", "t", "1", "y", "yes")
