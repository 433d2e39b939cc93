"""Queues: what a pilot may ask for, and how it is preempted."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from commensald.schedulers.pbs.records import Record, flag, integer
from commensald.schedulers.pbs.times import duration

KILL_DELAY_SECONDS = 10.0
"""PBS's own default (pbs_queue_attributes(7B), kill_delay)."""
PREEMPT_QUEUE_PRIO = 150
"""PBS's own default (pbs_sched_attributes(7B)): from this priority on a queue is an express queue, and its jobs preempt."""


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """One queue; ``kill_delay_seconds`` lie between SIGTERM and SIGKILL, ``most_seconds`` is the longest walltime that it takes."""

    name: str
    priority: int
    enabled: bool
    started: bool
    routes: bool = False
    kill_delay_seconds: float = KILL_DELAY_SECONDS
    most_seconds: float | None = None
    users: str | None = None
    """``acl_users``, where only these may use it."""


def queues(records: Mapping[str, Record]) -> dict[str, Queue]:
    """All of them by name. Raises TimeError."""
    return {name: _queue(name, record) for name, record in records.items()}


def _queue(name: str, record: Record) -> Queue:
    most = record.get("resources_max.walltime")
    return Queue(
        name=name,
        priority=integer(record.get("Priority", "0")),
        enabled=flag(record, "enabled"),
        started=flag(record, "started"),
        routes=record.get("queue_type", "Execution").lower().startswith("r"),
        kill_delay_seconds=duration(record["kill_delay"]) if "kill_delay" in record else KILL_DELAY_SECONDS,
        most_seconds=None if most is None else duration(most),
        users=record.get("acl_users") if flag(record, "acl_user_enable") else None,
    )


def of_pilots(known: Mapping[str, Queue], name: str | None, server: Record) -> Queue | None:
    """The queue that pilots go to: the one of that ``name``, without one the server's default."""
    return known.get(server.get("default_queue", "") if name is None else name)
