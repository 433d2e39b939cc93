"""The table of checks, and what comes of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from commensald.doctor import Finding, Severity, accounting, fault, good, preemption, scheduling, surroundings, visibility
from commensald.doctor.facts import Site, Slurm

OfSlurm: TypeAlias = Callable[[Site, Slurm], Iterator[Finding]]

OF_SLURM: tuple[OfSlurm, ...] = (
    visibility.version,
    visibility.permission,
    preemption.preempt_type,
    preemption.tiers,
    preemption.qos_order,
    preemption.mode,
    preemption.exemption,
    preemption.sharing,
    preemption.grace,
    preemption.user_signal,
    accounting.fair_share,
    accounting.budgets,
    accounting.job_counts,
    scheduling.backfill,
    scheduling.polling,
    scheduling.standing,
    scheduling.queue_depth,
    scheduling.completing,
    scheduling.hooks,
    scheduling.power_saving,
    visibility.private_data,
    visibility.clock,
    visibility.bindings,
    surroundings.shared_folder,
    surroundings.trial_job,
    surroundings.route,
)
ORDER = tuple(Severity)


def examine(site: Site) -> tuple[Finding, ...]:
    """Every check's findings, worst first, otherwise in the order of the table."""
    return tuple(sorted(_findings(site), key=lambda each: ORDER.index(each.severity)))


def _findings(site: Site) -> Iterator[Finding]:
    if site.slurm is not None:
        for check in OF_SLURM:
            yield from check(site, site.slurm)
    elif site.silence:
        yield fault(
            "Slurm",
            f"Slurm does not answer: {site.silence}",
            "Set scheduler.path and scheduler.slurm_conf; try `scontrol ping`.",
        )
    else:
        yield good("scheduler", "The embedded cluster has no settings that could hurt anybody.")
    yield from surroundings.ring(site)


def hurts(findings: Sequence[Finding]) -> bool:
    """A harvest would hurt primary jobs."""
    return any(each.severity is Severity.HARM for each in findings)
