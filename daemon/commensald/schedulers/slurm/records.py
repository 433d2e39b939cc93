"""Records: what ``scontrol -o show`` prints of one job, node, partition or reservation, key by key, in its own words.

Command line and bindings both give records, so that everything behind them is written once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from commensald.schedulers import SchedulerError

Record = Mapping[str, str]

_COUNT = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)([KM]?)(?:-.*)?", re.ASCII)
_FACTORS = {"": 1, "K": 1024, "M": 1024**2}


class UnreadableError(SchedulerError):
    """An answer of Slurm's that is not whole, or not of the form that we know."""


def need(record: Record, key: str) -> str:
    """The value of ``key``. Raises UnreadableError."""
    if key not in record:
        raise UnreadableError(f"a record without {key}", " ".join(f"{name}={value}" for name, value in record.items())[:300])
    return record[key]


def count(text: str) -> int:
    """The first number of ``4``, ``3-5`` or ``1.5K`` (Slurm prints large ones with a factor of 1024). Raises UnreadableError."""
    match = _COUNT.fullmatch(text)
    if match is None:
        raise UnreadableError("not a number", text)
    return int(float(match[1]) * _FACTORS[match[2]])
