"""What the embedded cluster is told and what it answers: submissions, settings, actions."""

from __future__ import annotations

import math
from enum import StrEnum

import msgspec


class Reason(StrEnum):
    """Why the cluster ends a job."""

    PREEMPT = "preempt"
    LIMIT = "limit"
    CANCEL = "cancel"
    GRACE = "grace"
    NODE_FAIL = "node_fail"
    INJECTED = "injected"
    SHUTDOWN = "shutdown"


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A submission. Order in the queue: ``tier``, then ``priority`` (both highest first), then order of submission.

    ``pilot`` is the uuid of a preemptible pilot (below every primary job, whatever its tier), ``None`` for a primary job;
    ``node`` is the one node an aimed pilot asks for.
    """

    id: str
    name: str
    owner: str
    node_count: int = 1
    time_limit: float | None = None
    tier: int = 1
    priority: float = 0.0
    pilot: str | None = None
    node: str | None = None


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the cluster, durations in seconds (the words are those of slurm.conf(5)).

    ``slurm_like``: time limits are rounded up to whole minutes, a pilot that would overlap a planned start or a reservation
    is not started, and a primary job takes free nodes before it takes a pilot's. Without it primary jobs do not see pilots at all.
    """

    grace_seconds: float = 30.0
    """From the first signal of a preemption to its end."""
    kill_wait_seconds: float = 10.0
    """From SIGTERM to SIGKILL at a time limit or a cancel."""
    preempt_kill_wait_seconds: float = 0.0
    """From the end of grace to SIGKILL, after a further SIGTERM; 0 kills at the end of grace."""
    preempt_signal: str = "TERM"
    """``USR1``: as with ``preempt_send_user_signal`` and ``--signal=USR1``, grace begins with SIGUSR1 instead of SIGTERM."""
    slurm_like: bool = False
    plan_depth: int = 100
    """How many pending jobs get a planned start (``bf_max_job_test``)."""

    def limit(self, seconds: float | None) -> float | None:
        """The time limit the scheduler enforces for the one asked for."""
        if seconds is None or not self.slurm_like:
            return seconds
        return max(1.0, math.ceil(seconds / 60)) * 60.0


class Assign(msgspec.Struct, frozen=True, kw_only=True):
    """These nodes now belong to the job; its process starts with :class:`Start`, once no pilot is left on them."""

    job: str
    nodes: tuple[str, ...]


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """Start the job's process; ``end`` is when its time limit is reached."""

    job: str
    nodes: tuple[str, ...]
    end: float | None


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """Send SIGCONT and then this signal to every process of the job."""

    job: str
    signal: str
    reason: Reason


class Kill(msgspec.Struct, frozen=True, kw_only=True):
    """Send SIGKILL to every process of the job."""

    job: str
    reason: Reason


class Drop(msgspec.Struct, frozen=True, kw_only=True):
    """The job is gone before it had a process."""

    job: str
    reason: Reason


Action = Assign | Start | Signal | Kill | Drop


class RefusedError(Exception):
    """A request that the cluster cannot carry out; the message says why."""
