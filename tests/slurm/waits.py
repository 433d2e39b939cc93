"""Where a primary job's wait went, as slurmctld's log tells it: Slurm's own passes, and the pilots that had to leave. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

import msgspec

_LINE = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+)\] (.*)")
_SUBMITTED = re.compile(r"submit_batch_job: JobId=(\d+) ")
_TOLD = re.compile(r"job_signal: (?:10|15|18) of running JobId=(\d+) ")
_GONE = re.compile(r"_job_complete: JobId=(\d+) done")
_STARTED = re.compile(r"(?:Allocate JobId=(\d+) .*Partition=|Started JobId=(\d+) in )primary\b")


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of one preempting job: until Slurm told the pilots, until the last of them had gone, until Slurm started it."""

    noticed: float
    leaving: float
    granted: float


def waits(log: str) -> list[Wait]:
    """One for each job of the primary partition that preempted somebody, in the order of their starts."""
    return list(_waits(log))


def _waits(log: str) -> Iterator[Wait]:
    submitted, told, gone = dict[str, float](), dict[str, float](), dict[str, float]()
    for at, words in _lines(log):
        for pattern, times in ((_SUBMITTED, submitted), (_TOLD, told), (_GONE, gone)):
            if match := pattern.search(words):
                times.setdefault(match[1], at)
        if (match := _STARTED.search(words)) and (asked := submitted.get(match[1] or match[2])) is not None:
            victims = [pilot for pilot, when in told.items() if when >= asked and pilot in gone]
            if victims:
                first, last = min(told[pilot] for pilot in victims), max(gone[pilot] for pilot in victims)
                yield Wait(noticed=first - asked, leaving=last - first, granted=at - last)


def _lines(log: str) -> Iterator[tuple[float, str]]:
    for line in log.splitlines():
        if match := _LINE.match(line):
            yield datetime.fromisoformat(match[1]).timestamp(), match[2]
