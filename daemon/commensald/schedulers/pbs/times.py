"""How PBS writes times: instants as ctime(3) in the client's time zone, which we set to UTC, or as epoch seconds; durations HH:MM:SS."""

from __future__ import annotations

import calendar
import re
from functools import lru_cache

from commensald.schedulers import SchedulerError

_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: number for number, name in enumerate(_NAMES, 1)}
_CTIME = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})", re.ASCII)
_EPOCH = re.compile(r"\d{1,12}(?:\.\d{1,9})?", re.ASCII)
_CLOCK = re.compile(r"(?:(?:(\d{1,9}):)?(\d{1,9}):)?(\d{1,9}(?:\.\d{1,9})?)", re.ASCII)


class TimeError(SchedulerError):
    """A time that follows no grammar of PBS's."""


@lru_cache(maxsize=65_536)
def instant(text: str) -> float | None:
    """Epoch seconds; ``None`` where PBS says that it does not know (``UNKNOWN``, or 0). Raises TimeError."""
    text = text.strip()
    match = _CTIME.fullmatch(text)
    if match is not None and match[1] in _MONTHS:
        day, hours, minutes, seconds, year = (int(match[group]) for group in (2, 3, 4, 5, 6))
        return float(calendar.timegm((year, _MONTHS[match[1]], day, hours, minutes, seconds))) if year and 1 <= day <= 31 else None
    if _EPOCH.fullmatch(text):
        return float(text) or None
    if text in ("", "UNKNOWN"):
        return None
    raise TimeError("not a time", text[:300])


@lru_cache(maxsize=16_384)
def duration(text: str) -> float:
    """Seconds of SS, MM:SS or HH:MM:SS (pbs_resources(7B), format of durations). Raises TimeError."""
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        raise TimeError("not a duration", text[:300])
    hours, minutes, seconds = (float(part or 0.0) for part in match.groups())
    return hours * 3600.0 + minutes * 60.0 + seconds


def clock(seconds: float) -> str:
    """HH:MM:SS, rounded down to whole seconds, one at least."""
    whole = max(int(seconds), 1)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"
