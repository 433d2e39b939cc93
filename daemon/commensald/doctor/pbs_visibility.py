"""PBS: whether it shows the daemon what a forecast rests on, and how much it plans itself. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from commensald.doctor import Finding, advice, fault, good
from commensald.doctor.facts import Pbs, Site
from commensald.doctor.scheduling import measured
from commensald.schedulers.pbs.records import flag
from commensald.schedulers.pbs.settings import backfill_depth

OLDEST = 14
"""PBS Professional 14.1 was the first to print JSON."""
FEW = 5
LISTED = 5


def version(site: Site, pbs: Pbs) -> Iterator[Finding]:
    """A PBS that we can read."""
    found = pbs.site.version
    major = found.partition(".")[0]
    if major.isdigit() and int(major) < OLDEST:
        yield fault("version", f"PBS {found} is older than {OLDEST}: it prints no JSON.", "Update PBS.")
    else:
        yield good("version", f"PBS {found or 'of an unknown version'} answers.")


def other_jobs(site: Site, pbs: Pbs) -> Iterator[Finding]:
    """The daemon sees everybody's jobs."""
    if flag(pbs.site.server, "query_other_jobs"):
        yield good("query_other_jobs", "The daemon sees everybody's jobs.")
    else:
        yield fault(
            "query_other_jobs",
            f"PBS hides others' jobs from {site.owner}: windows are guessed from how long holes have lasted.",
            f"qmgr -c 'set server query_other_jobs = True', or make {site.owner} an operator.",
        )


def depth(site: Site, pbs: Pbs) -> Iterator[Finding]:
    """PBS tells when several waiting jobs will start."""
    found = backfill_depth(pbs.site.server)
    if found < FEW:
        yield advice(
            "backfill_depth",
            f"PBS keeps nodes free, and tells a start, for {found} waiting job(s) only; the rest is our own plan.",
            "qmgr -c 'set server backfill_depth = 20', if the scheduler's cycle allows it; and strict_ordering in sched_config.",
        )
    else:
        yield good("backfill_depth", f"PBS tells when {found} waiting jobs will start.")


def limits(site: Site, pbs: Pbs) -> Iterator[Finding]:
    """Pilots leave the owner room for primary jobs of its own."""
    found = [f"{key} = {value}" for key, value in sorted(pbs.site.server.items()) if key.startswith(("max_run", "max_queued"))]
    if found:
        yield advice(
            "job limits",
            f"The server limits jobs ({', '.join(found)}), and pilots count: up to {site.config.pilots.max_pilots} (pilots.max_pilots).",
            "pilots.max_pilots = half of what an account may have, or an account of their own for pilots.",
        )


def hooks(site: Site, pbs: Pbs) -> Iterator[Finding]:
    """Prologue and epilogue run for every pilot, and the epilogue stands between a pilot and the next primary job."""
    if site.trial is not None and site.trial.end_seconds is not None:
        yield measured(site.trial, "with the prologue, epilogue and hooks that MOM has")


def damaged(site: Site, pbs: Pbs) -> Iterator[Finding]:
    """Jobs whose record in ``qstat -F json`` is no JSON."""
    found = (*pbs.repaired, *pbs.unreadable)
    if not found:
        yield good("qstat", f"qstat's JSON of {pbs.jobs} jobs is JSON.")
        return
    listed = ", ".join(found[:LISTED]) + (f" and {len(found) - LISTED} more" if len(found) > LISTED else "")
    lost = f"; {len(pbs.unreadable)} cannot be read at all and count as present" if pbs.unreadable else ", and were read all the same"
    yield advice(
        "qstat",
        f"The records of {listed} are no JSON{lost}.",
        "Their owners exported shell functions or odd values (qsub -V): let them name what they need (qsub -v).",
    )
