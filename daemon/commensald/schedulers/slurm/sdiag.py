"""``sdiag``: how busy the controller is, and how long it should be left alone."""

from __future__ import annotations

import re

import msgspec

from commensald.schedulers.slurm.records import UnreadableError

SHARE = 0.05
"""Our queries may take this part of the controller's time."""
SLOW_SECONDS = 1.0
PATIENCE = 4.0
"""A look that takes longer than this is followed by a rest of so many times its length."""
BUSY_THREADS = 128
"""Half of what slurmctld serves at once (MAX_SERVER_THREADS 256)."""
BUSY_AGENTS = 500
BUSY_REST_SECONDS = 60.0
MOST_REST_SECONDS = 120.0

_NUMBER = r"\s*:?\s*(\d{1,18})"
_JOB_INFO = re.compile(r"REQUEST_JOB_INFO\s+\(\s*\d+\)\s+count:(\d{1,18})\s+ave_time:(\d{1,18})")


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What we read of sdiag(1); ``None`` where this version does not say it, or nothing has happened yet."""

    threads: int
    agents: int
    backfill_mean_seconds: float | None = None
    backfill_cycles: int = 0
    job_query_seconds: float | None = None
    """The mean REQUEST_JOB_INFO, anybody's."""


def parse(text: str) -> Load:
    """The counters of ``sdiag``'s text, the same on all versions. Raises UnreadableError."""
    threads, agents = _first(r"Server thread count", text), _first(r"Agent queue size", text)
    if threads is None or agents is None:
        raise UnreadableError("not sdiag's answer", text[:300])
    backfill = text.partition("Backfilling stats")[2]
    mean, queries = _first(r"\tMean cycle", backfill), _JOB_INFO.search(text)
    return Load(
        threads=threads,
        agents=agents,
        backfill_mean_seconds=None if mean is None else mean / 1e6,
        backfill_cycles=_first(r"\tTotal cycles", backfill) or 0,
        job_query_seconds=None if queries is None else int(queries[2]) / 1e6,
    )


def rest_seconds(load: Load | None, query_seconds: float) -> float:
    """How long to leave the controller alone after a look that took us ``query_seconds``.

    So that our queries stay within :data:`SHARE` of its time, by its own account of what one costs; longer while it lets us wait, and a
    minute while many requests wait for it.
    """
    cost = load.job_query_seconds if load is not None and load.job_query_seconds is not None else query_seconds
    waited = query_seconds * PATIENCE if query_seconds > SLOW_SECONDS else 0.0
    busy = load is not None and (load.threads >= BUSY_THREADS or load.agents >= BUSY_AGENTS)
    return min(max(cost / SHARE, waited, BUSY_REST_SECONDS if busy else 0.0), MOST_REST_SECONDS)


def _first(name: str, text: str) -> int | None:
    match = re.search(name + _NUMBER, text)
    return int(match[1]) if match else None
