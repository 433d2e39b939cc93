"""What pilots cost the scheduler, and what a pilot's start and end cost a node. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from commensald.doctor import Finding, advice, good, harm, unknown
from commensald.doctor.facts import Backfill, Site, Slurm, Trial
from commensald.doctor.settings import seconds, setting, word
from commensald.schedulers.slurm.settings import BF_INTERVAL_SECONDS, BF_RESOLUTION_SECONDS
from commensald.schedulers.slurm.settings import seconds as scheduler_seconds

BF_MAX_JOB_TEST = 500.0
"""Slurm's default (slurm.conf(5), SchedulerParameters)."""
BATCH_SCHED_DELAY_SECONDS = 3.0
"""The same; jobs that preempted pilots which left at once began 1.8 to 5.6 s after their submission, with 0 or 1 within 2 s (measured on
22.05 and 26.05)."""
PASS_SECONDS = 1.0
"""Passes are made at whole seconds."""
SHARE_OF_INTERVAL = 0.1
"""A backfill pass may be made longer by this part of bf_interval before it is worth a word."""
MOST_END_SECONDS = 2.0
"""What Slurm itself takes to free a node is below this."""
HOOKS = ("Prolog", "Epilog", "PrologSlurmctld", "EpilogSlurmctld", "TaskProlog", "TaskEpilog")


def backfill(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """Backfill is on, and looks often enough."""
    interval = scheduler_seconds(slurm.settings, "bf_interval", BF_INTERVAL_SECONDS)
    resolution = scheduler_seconds(slurm.settings, "bf_resolution", BF_RESOLUTION_SECONDS)
    if setting(slurm, "SchedulerType") == "sched/builtin":
        yield advice(
            "bf_interval",
            "Slurm does not backfill (SchedulerType=sched/builtin): it plans no starts, so windows rest on how long holes have lasted.",
            "slurm.conf: SchedulerType=sched/backfill.",
        )
    elif interval > BF_INTERVAL_SECONDS:
        yield advice(
            "bf_interval",
            f"Slurm plans every {interval:.0f} s (bf_interval): a hole may be as old as that before a standing pilot gets it.",
            "slurm.conf: SchedulerParameters=bf_interval=30, if the backfill cycle (sdiag) allows it.",
        )
    else:
        yield good("bf_interval", f"Slurm plans every {interval:.0f} s, with starts exact to {resolution:.0f} s (bf_resolution).")


def passes(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """A job that preempts is started one pass of the main scheduler after the pilot has gone; passes are batch_sched_delay apart."""
    delay = scheduler_seconds(slurm.settings, "batch_sched_delay", BATCH_SCHED_DELAY_SECONDS)
    words = f"A job that preempts a pilot starts at Slurm's next pass after the pilot has gone: up to {delay + PASS_SECONDS:.0f} s later"
    if delay > 1:
        yield harm("batch_sched_delay", f"{words} (batch_sched_delay).", "slurm.conf: batch_sched_delay=0 in SchedulerParameters.")
    else:
        yield good("batch_sched_delay", f"{words}.")


def polling(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """We do not ask much more often than Slurm plans."""
    interval, poll = scheduler_seconds(slurm.settings, "bf_interval", BF_INTERVAL_SECONDS), site.config.daemon.poll_seconds
    if poll < interval / 6:
        yield advice(
            "poll_seconds",
            f"The daemon asks every {poll:g} s, while Slurm plans every {interval:.0f} s.",
            f"daemon.poll_seconds = {max(interval / 3, 1.0):.0f}",
        )


def standing(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """Pending pilots that wait for any node are looked at in every backfill pass."""
    count = site.standing
    if count == 0:
        return
    if slurm.backfill is None:
        yield unknown("standing pilots", "sdiag tells of no backfill pass yet.", "Ask again later; the owner must be allowed sdiag.")
        return
    cost = standing_cost(slurm.backfill, count)
    interval = scheduler_seconds(slurm.settings, "bf_interval", BF_INTERVAL_SECONDS)
    words = f"{count} standing pilots add about {cost * 1000:.1f} ms to a backfill pass of {slurm.backfill.cycle_seconds * 1000:.1f} ms"
    if slurm.backfill.cycle_seconds + cost > interval:
        yield harm("standing pilots", f"{words}: longer than bf_interval ({interval:.0f} s), so every job waits for it.", FEWER)
    elif cost > SHARE_OF_INTERVAL * interval:
        yield advice("standing pilots", f"{words}, which is much of bf_interval ({interval:.0f} s).", FEWER)
    else:
        yield good("standing pilots", f"{words}, every {interval:.0f} s.")


FEWER = "Fewer standing pilots, or SchedulerParameters=bf_max_job_part=... for the pilots' partition."


def standing_cost(found: Backfill, count: int) -> float:
    """Seconds that ``count`` more jobs add to a mean pass: each like a mean job of it."""
    return count * found.cycle_seconds / max(found.depth, 1.0)


def queue_depth(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """Slurm looks at a limited number of jobs; pilots must not push primary jobs out."""
    most = scheduler_seconds(slurm.settings, "bf_max_job_test", BF_MAX_JOB_TEST)
    depth = slurm.backfill.depth if slurm.backfill else 0.0
    own_tier = word(slurm, "SchedulerParameters", "bf_max_job_part")
    if depth + site.standing > most and not own_tier:
        yield advice(
            "bf_max_job_test",
            f"A backfill pass looks at {most:.0f} jobs and has {depth:.0f}: standing pilots, last in order, may never be looked at.",
            "slurm.conf: a larger bf_max_job_test in SchedulerParameters.",
        )


def completing(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """CompleteWait holds all scheduling back while any job, a pilot included, completes."""
    most = seconds(slurm, "CompleteWait")
    if most > 0:
        yield advice(
            "CompleteWait",
            f"While a pilot ends, Slurm starts no job at all, for up to {most:.0f} s (CompleteWait).",
            "slurm.conf: CompleteWait=0, unless jobs need it.",
        )


def hooks(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """Prolog and epilog run for every pilot, and the epilog stands between a pilot and the next primary job."""
    found = [name for name in HOOKS if setting(slurm, name) or setting(slurm, f"{name}[0]")]
    if site.trial is not None and site.trial.end_seconds is not None:
        yield measured(site.trial, ", ".join(found) or "no prolog or epilog")
    elif found:
        yield advice(
            "prolog and epilog",
            f"{', '.join(found)} run for every pilot; after a preempted pilot the primary job waits until the epilog has ended.",
            "`commensal doctor --trial` measures it. " + QUICKER,
        )
    else:
        yield good("prolog and epilog", "No prolog and no epilog: a pilot costs a node nothing but its own start.")


QUICKER = "Let the scripts end at once for jobs of the pilots' account; pilots.minimum_window_seconds = ten times what is left."


def measured(trial: Trial, scripts: str) -> Finding:
    """What ``scripts`` around a job cost a node."""
    start, end = trial.start_seconds or 0.0, trial.end_seconds or 0.0
    words = f"A pilot's first process runs {start:.1f} s after its start, its node is free {end:.1f} s after its last one ({scripts})."
    if end > MOST_END_SECONDS:
        return harm("prolog and epilog", f"{words} A primary job that preempts a pilot waits that long.", QUICKER)
    return good("prolog and epilog", words)


def power_saving(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """Nodes that are switched off when idle."""
    after = setting(slurm, "SuspendTime")
    if not setting(slurm, "SuspendProgram") or after in ("", "INFINITE", "NONE", "-1"):
        yield good("power saving", "Idle nodes are left switched on.")
        return
    yield advice(
        "power saving",
        f"Slurm switches nodes off after {after} without a job. Pilots keep such nodes on, and take none that are off.",
        "Decide whether the energy is worth it; SuspendExcParts= or pilots.max_pilots bound it.",
    )
