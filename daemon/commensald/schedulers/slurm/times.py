"""How Slurm writes times: instants as we ask for them (``SLURM_TIME_FORMAT``), durations in the six forms of sbatch(1), ``--time``."""

from __future__ import annotations

import re

from commensald.schedulers import SchedulerError

_NO_TIME = frozenset({"", "unknown", "none", "n/a", "(null)", "not_set", "invalid", "now"})
_NO_LIMIT = frozenset({"unlimited", "infinite", "partition_limit"})
_INSTANT = re.compile(r"\d{1,12}", re.ASCII)
_DAYS = re.compile(
    r"(?P<sign>-?)(?P<days>\d{1,12})-(?P<hours>\d{1,12})(?::(?P<minutes>\d{1,12})(?::(?P<seconds>\d{1,9}(?:\.\d{1,9})?))?)?", re.ASCII
)
_CLOCK = re.compile(r"(?P<sign>-?)(?:(?:(?P<hours>\d{1,12}):)?(?P<minutes>\d{1,12}):)(?P<seconds>\d{1,9}(?:\.\d{1,9})?)", re.ASCII)
_MINUTES = re.compile(r"(?P<sign>-?)(?P<minutes>\d{1,12})", re.ASCII)
_UNITS = {"usec": 1e-6, "sec": 1.0, "min": 60.0, "hour": 3600.0, "day": 86_400.0}
_MEASURE = re.compile(r"(\d{1,12})\s*([a-z]*?)s?", re.ASCII)
MINUTE = 60.0
DAY = 86_400.0


class TimeError(SchedulerError):
    """A time that follows no grammar of Slurm's."""


def instant(text: str) -> float | None:
    """Epoch seconds of a time printed with ``%s``; ``None`` where Slurm says that there is none. Raises TimeError."""
    if _INSTANT.fullmatch(text):
        return float(text) or None
    if text.lower() in _NO_TIME:
        return None
    raise TimeError("not a time", text)


def duration(text: str) -> float | None:
    """Seconds of MM, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS; ``None``: unlimited or unknown, never 0. Raises TimeError."""
    match = _DAYS.fullmatch(text) or _CLOCK.fullmatch(text) or _MINUTES.fullmatch(text)
    if match is not None:
        parts = {name: float(value) for name, value in match.groupdict().items() if value and name != "sign"}
        total = parts.get("days", 0.0) * DAY + parts.get("hours", 0.0) * 3600.0 + parts.get("minutes", 0.0) * MINUTE
        return (-1.0 if match["sign"] else 1.0) * (total + parts.get("seconds", 0.0))
    if text.lower() in _NO_TIME | _NO_LIMIT:
        return None
    raise TimeError("not a duration", text)


def measure(text: str) -> float | None:
    """Seconds of a setting with a unit ("10 sec", "0 min", "2000 usec"; ``scontrol show config``), else of a duration."""
    match = _MEASURE.fullmatch(text.strip())
    if match is not None and match[2] in _UNITS:
        return int(match[1]) * _UNITS[match[2]]
    return duration(text.strip())


def whole_minutes(seconds: float) -> int:
    """A time limit for ``--time``: whole minutes rounded down, one at least (Slurm knows nothing shorter)."""
    return max(int(seconds // MINUTE), 1)
