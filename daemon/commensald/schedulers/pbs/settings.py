"""The server's and the scheduler's settings, and what follows from them for pilots: facts of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping

from commensald.cluster import Facts
from commensald.schedulers.pbs.queues import PREEMPT_QUEUE_PRIO, Queue
from commensald.schedulers.pbs.records import Record, integer

PRODUCT = "pbs"
PREEMPT_ORDER = "SCR"
"""PBS's own default (pbs_sched_attributes(7B))."""
BACKFILL_DEPTH = 1
"""PBS's own default (pbs_server_attributes(7B)): for so many jobs nodes are kept free, and a start is estimated."""


def methods(sched: Record) -> tuple[str, ...]:
    """What may happen to a preempted pilot first, one letter for each span of remaining time of ``preempt_order`` (``SCR 80 SC 50 R``).

    R: requeued, D: deleted, S: suspended, C: checkpointed, which pilots cannot be (``qsub -c n``), so that the next letter counts.
    """
    words = [word for word in sched.get("preempt_order", PREEMPT_ORDER).split() if not word.isdigit()]
    return tuple(dict.fromkeys(next((letter for letter in word if letter != "C"), "C") for word in words))


def grace_seconds(sched: Record, queue: Queue | None) -> float:
    """Between the notice of a preemption and the kill: the queue's kill_delay where pilots are requeued or deleted, else nothing."""
    return queue.kill_delay_seconds if queue is not None and set(methods(sched)) <= {"R", "D"} else 0.0


def preempt_queue_prio(sched: Record) -> int:
    """From this priority on a queue's jobs preempt."""
    return integer(sched["preempt_queue_prio"]) if "preempt_queue_prio" in sched else PREEMPT_QUEUE_PRIO


def backfill_depth(server: Record) -> int:
    """For how many jobs the scheduler keeps nodes free and estimates starts."""
    return integer(server["backfill_depth"]) if "backfill_depth" in server else BACKFILL_DEPTH


def facts(version: str, server: Record, sched: Record, queue: Queue | None, measured: Mapping[str, str]) -> Facts:
    """What a snapshot says of the scheduler; ``queue`` is the pilots', ``measured`` goes into ``extra`` as it is."""
    shown = {
        "preempt_order": sched.get("preempt_order", PREEMPT_ORDER),
        "preempt_queue_prio": str(preempt_queue_prio(sched)),
        "backfill_depth": str(backfill_depth(server)),
        "scheduler_iteration_seconds": server.get("scheduler_iteration", ""),
    }
    if queue is not None:
        shown |= {
            "queue": queue.name,
            "queue_priority": str(queue.priority),
            "kill_delay_seconds": f"{queue.kill_delay_seconds:g}",
            "queue_max_seconds": "" if queue.most_seconds is None else f"{queue.most_seconds:g}",
        }
    return Facts(product=PRODUCT, version=version, grace_seconds=grace_seconds(sched, queue), extra={**shown, **measured})
