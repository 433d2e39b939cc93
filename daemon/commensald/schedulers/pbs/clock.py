"""How far the server's clock is ahead of ours. PBS does not show it, but it shows when it took a job, and we know when we gave it one."""

from __future__ import annotations

import msgspec

from commensald.schedulers.pbs.records import Record
from commensald.schedulers.pbs.times import TimeError, instant

MOST_SECONDS = 5.0
"""A submission that took longer tells too little."""
CLOCK_SECONDS = 1.0
"""PBS shows whole seconds: a smaller difference is none."""


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """A job that we submitted between two instants of our clock."""

    job: str
    before: float
    after: float


def ahead_seconds(given: Given, record: Record) -> float | None:
    """The server's clock less ours, 0 where they agree to a second; ``None`` where this job does not tell."""
    try:
        created = instant(record.get("ctime", ""))
    except TimeError:
        return None
    if created is None or given.after - given.before > MOST_SECONDS:
        return None
    ahead = created + CLOCK_SECONDS / 2 - (given.before + given.after) / 2
    return ahead if abs(ahead) > CLOCK_SECONDS else 0.0
