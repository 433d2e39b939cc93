"""PBS: whether a primary job gets its nodes back at once. Queues, their priorities, and what preemption does to a pilot. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from commensald.doctor import Finding, advice, fault, good, harm, unknown
from commensald.doctor.facts import Pbs, Site
from commensald.schedulers.pbs.queues import Queue
from commensald.schedulers.pbs.settings import PREEMPT_ORDER, grace_seconds, methods, preempt_queue_prio

NOTICE_SECONDS = 10.0
"""PBS's default kill_delay; with less a ring that loses all members at once may not save."""
_OF_RESERVATION = re.compile(r"[RSM]\d+")


def queue(site: Site, pbs: Pbs) -> Iterator[Finding]:
    """The pilots' queue exists and would take them."""
    own, wanted = pbs.site.pilots, site.config.pilots.partition or "the server's default queue"
    if own is None:
        yield fault("queue", f"There is no queue for pilots: {wanted} does not exist.", _made("scavenger"))
    elif own.routes:
        yield fault("queue", f"{own.name} only routes to other queues.", "Name an execution queue in pilots.partition.")
    elif not (own.enabled and own.started):
        yield fault("queue", f"{own.name} takes no jobs or starts none.", f"qmgr -c 'set queue {own.name} enabled=True,started=True'")
    elif own.users is not None and not _allowed(site.owner, own.users):
        yield fault(
            "queue",
            f"{own.name} does not admit {site.owner} (acl_users).",
            f"qmgr -c 'set queue {own.name} acl_users += {site.owner}'",
        )
    else:
        yield good("queue", f"Pilots go to {own.name}.")


def quality_of_service(site: Site, pbs: Pbs) -> Iterator[Finding]:
    """PBS has none."""
    if site.config.pilots.qos is not None:
        yield advice("qos", f"PBS has no quality of service: pilots.qos = {site.config.pilots.qos} does nothing.", "Remove pilots.qos.")


def priorities(site: Site, pbs: Pbs) -> Iterator[Finding]:
    """Every queue of primary jobs is an express queue, the pilots' is none: only then does one preempt the other."""
    own, express = pbs.site.pilots, preempt_queue_prio(pbs.site.sched or {})
    if own is None:
        return
    if own.priority >= express:
        yield harm(
            "queue priority",
            f"{own.name} has priority {own.priority}, at or above preempt_queue_prio ({express}): pilots preempt, and are not preempted.",
            f"qmgr -c 'set queue {own.name} Priority = 10'",
        )
    weak = sorted(each.name for each in _of_primaries(pbs, own) if each.priority < express)
    if weak:
        yield harm(
            "queue priority",
            f"Jobs in {', '.join(weak)} cannot preempt pilots: these queues' priority is below preempt_queue_prio ({express}).",
            "; ".join(f"qmgr -c 'set queue {name} Priority = {express}'" for name in weak),
        )
    elif not _of_primaries(pbs, own):
        yield harm(
            "queue priority", f"{own.name} is the only queue, so primary jobs run in it too and cannot preempt pilots.", _made("scavenger")
        )
    elif own.priority < express:
        yield good("queue priority", f"{own.name} ({own.priority}) is below preempt_queue_prio ({express}), all other queues are not.")


def express_queue(site: Site, pbs: Pbs) -> Iterator[Finding]:
    """preempt_prio knows express queues."""
    order = (pbs.site.sched or {}).get("preempt_prio")
    if order is not None and "express_queue" not in order:
        yield harm(
            "preempt_prio",
            f"Express queues do not preempt here (preempt_prio = {order}).",
            "qmgr -c 'set sched preempt_prio = \"express_queue, normal_jobs\"'",
        )


def order(site: Site, pbs: Pbs) -> Iterator[Finding]:
    """A preempted pilot ends, rather than being suspended or left alone."""
    sched, fix = pbs.site.sched, "qmgr -c 'set sched preempt_order = R'"
    if sched is None:
        yield unknown(
            "preempt_order",
            f"qmgr does not show the scheduler's settings to {site.owner}; PBS's default ({PREEMPT_ORDER}) suspends.",
            "Let the owner run `qmgr -c 'list sched'`, or ask the administrator for preempt_order.",
        )
        return
    found, words = methods(sched), sched.get("preempt_order", PREEMPT_ORDER)
    if "S" in found:
        yield harm("preempt_order", f"A preempted pilot is suspended, and keeps its memory and its GPUs (preempt_order = {words}).", fix)
    elif "C" in found:
        yield harm("preempt_order", f"A pilot cannot be checkpointed, so it is not preempted at all (preempt_order = {words}).", fix)
    else:
        yield good("preempt_order", f"A preempted pilot ends (preempt_order = {words}).")


def kill_delay(site: Site, pbs: Pbs) -> Iterator[Finding]:
    """Time to save when all members of a ring are preempted at once."""
    own = pbs.site.pilots
    if own is None:
        return
    left = grace_seconds(pbs.site.sched or {}, own)
    if own.kill_delay_seconds < NOTICE_SECONDS:
        yield advice(
            "kill_delay",
            f"A preempted pilot is killed {own.kill_delay_seconds:.0f} s after SIGTERM. If all members of a training are preempted "
            "together and cannot save in that time, the steps since its last checkpoint are lost.",
            f"qmgr -c 'set queue {own.name} kill_delay = 30'. Pilots leave within a second all the same.",
        )
    elif left > 0:
        yield good(
            "kill_delay",
            f"A preempted pilot may use up to {left:.0f} s to save; it leaves as soon as it can: PBS's scheduler waits for it.",
        )


def configuration(site: Site, pbs: Pbs) -> Iterator[Finding]:
    """What stands in a file of the server's host only."""
    folder = (pbs.site.sched or {}).get("sched_priv", "$PBS_HOME/sched_priv")
    yield unknown(
        "sched_config",
        f"Whether PBS preempts at all, and whether fair-share counts pilots, stands in {folder}/sched_config on the server's host.",
        "There: `preemptive_sched: true ALL`; with `fair_share: true` give pilots an account of their own (pilots.account).",
    )


def _of_primaries(pbs: Pbs, own: Queue) -> list[Queue]:
    """Execution queues that are in use, the pilots' and those of reservations aside."""
    return [
        each
        for each in pbs.site.queues.values()
        if each.name != own.name and each.enabled and not each.routes and not _OF_RESERVATION.fullmatch(each.name)
    ]


def _allowed(owner: str, users: str) -> bool:
    """``acl_users``: names, perhaps with a host; a leading minus refuses, plus or nothing admits."""
    found = [each.strip().partition("@")[0] for each in users.split(",")]
    return f"-{owner}" not in found and bool({owner, f"+{owner}", "+", "*"} & set(found))


def _made(name: str) -> str:
    settings = "queue_type=Execution,Priority=10,kill_delay=30,enabled=True,started=True"
    return f"qmgr -c 'create queue {name}'; qmgr -c 'set queue {name} {settings}'; pilots.partition = \"{name}\""
