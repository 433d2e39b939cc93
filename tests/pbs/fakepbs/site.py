"""A site's settings: nodes, queues, and how the scheduler preempts (qmgr(8B), pbs_sched_attributes(7B)). Changed by ``qmgr`` as PBS's."""

from __future__ import annotations

import msgspec


class Queue(msgspec.Struct, kw_only=True):
    """An execution queue; durations in seconds, ``None`` where nothing is set."""

    priority: int | None = None
    kill_delay: int | None = None
    enabled: bool = True
    started: bool = True


def _queues() -> dict[str, Queue]:
    return {"workq": Queue(), "primaryq": Queue(priority=200), "scavq": Queue(priority=10, kill_delay=10)}


class Site(msgspec.Struct, kw_only=True):
    """``nodes``: name -> ncpus. Every job has its hosts to itself (``sharing = force_exclhost``)."""

    nodes: dict[str, int]
    server: str = "pbs-f"
    version: str = "23.06.06"
    sharing: str = "force_exclhost"
    queues: dict[str, Queue] = msgspec.field(default_factory=_queues)
    default_queue: str = "primaryq"
    scheduling: bool = True
    scheduler_iteration: int = 5
    preempt_queue_prio: int = 150
    preempt_order: str = "R"
    backfill_depth: int | None = None

    def kill_delay(self, queue: str) -> float:
        """From SIGTERM to SIGKILL; PBS's default is 10 s."""
        found = self.queues[queue].kill_delay
        return 10.0 if found is None else float(found)

    def express(self, queue: str) -> bool:
        """Whether its jobs preempt the others (``preempt_prio = express_queue, normal_jobs``)."""
        return (self.queues[queue].priority or 0) >= self.preempt_queue_prio
