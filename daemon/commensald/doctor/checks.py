"""The table of checks, and what comes of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from commensald.doctor import (
    Finding,
    Severity,
    accounting,
    fault,
    good,
    pbs_preemption,
    pbs_visibility,
    preemption,
    scheduling,
    surroundings,
    visibility,
)
from commensald.doctor.facts import Pbs, Site, Slurm

OfSlurm: TypeAlias = Callable[[Site, Slurm], Iterator[Finding]]
OfPbs: TypeAlias = Callable[[Site, Pbs], Iterator[Finding]]

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
    scheduling.passes,
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
OF_PBS: tuple[OfPbs, ...] = (
    pbs_visibility.version,
    pbs_preemption.queue,
    pbs_preemption.quality_of_service,
    pbs_preemption.priorities,
    pbs_preemption.express_queue,
    pbs_preemption.order,
    pbs_preemption.kill_delay,
    pbs_preemption.configuration,
    pbs_visibility.other_jobs,
    pbs_visibility.depth,
    pbs_visibility.limits,
    pbs_visibility.hooks,
    pbs_visibility.damaged,
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
    elif site.pbs is not None:
        for of_pbs in OF_PBS:
            yield from of_pbs(site, site.pbs)
    elif site.silence:
        yield _silent(site)
    else:
        yield good("scheduler", "The embedded cluster has no settings that could hurt anybody.")
    yield from surroundings.ring(site)


def _silent(site: Site) -> Finding:
    name, where, ping = ("PBS", "pbs_conf", "qstat -B") if site.config.scheduler.kind == "pbs" else ("Slurm", "slurm_conf", "scontrol ping")
    return fault(name, f"{name} does not answer: {site.silence}", f"Set scheduler.path and scheduler.{where}; try `{ping}`.")


def hurts(findings: Sequence[Finding]) -> bool:
    """A harvest would hurt primary jobs."""
    return any(each.severity is Severity.HARM for each in findings)
