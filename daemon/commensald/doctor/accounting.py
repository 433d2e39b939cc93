"""Whether pilots use up what the owner's primary jobs need: fair-share, budgets, numbers of jobs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from commensald.doctor import Finding, advice, good, harm, unknown
from commensald.doctor.facts import Site, Slurm
from commensald.doctor.pilots import qos
from commensald.doctor.settings import setting

BUDGETS = ("GrpTRESMins", "GrpTRESRunMins", "GrpWall")
JOB_LIMITS = ("MaxJobs", "MaxSubmit", "GrpJobs", "GrpSubmit", "MaxJobsPU", "MaxSubmitPU", "MaxJobsPA", "MaxSubmitPA")
"""Columns of ``sacctmgr show assoc`` and ``show qos``."""
FREE_QOS = (
    "sacctmgr add qos scavenger; sacctmgr modify qos scavenger set usagefactor=0 flags=overpartqos; allow it to the account; pilots.qos = "
    '"scavenger"'
)


def fair_share(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """Pilots lower no priority of the account's primary jobs."""
    weight = setting(slurm, "PriorityWeightFairShare") or "0"
    if not accounted(slurm):
        yield good("fair-share", "Usage is not recorded, so pilots cost nobody priority.")
    elif setting(slurm, "PriorityType") != "priority/multifactor" or weight == "0":
        yield good("fair-share", "Fair-share has no weight, so pilots cost nobody priority.")
    elif slurm.qos is None:
        yield unknown(
            "fair-share", f"Fair-share counts ({weight}), and the pilots' UsageFactor cannot be seen.", "Let the owner run sacctmgr."
        )
    elif _free(site, slurm):
        yield good("fair-share", "The pilots' QOS has UsageFactor=0: they use up no fair-share.")
    else:
        yield harm(
            "fair-share",
            f"Pilots use up fair-share (PriorityWeightFairShare={weight}): primary jobs of the same account are started later for it.",
            FREE_QOS,
        )


def budgets(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """Pilots use up no minutes that primary jobs are granted."""
    found = {name: value for limits in _owner_limits(slurm) for name, value in limits.items() if name in BUDGETS}
    if not found or not enforced(slurm):
        return
    listed = ", ".join(f"{name}={value}" for name, value in sorted(found.items()))
    if _free(site, slurm) and set(found) == {"GrpTRESMins"}:
        yield good("budgets", f"The account's {listed} is not touched: the pilots' QOS has UsageFactor=0.")
        return
    yield harm("budgets", f"Pilots use up what the account is granted ({listed}): then its primary jobs wait.", FREE_QOS)


def job_counts(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """Pilots leave the owner room for primary jobs of its own."""
    if slurm.associations is None or not enforced(slurm):
        return
    most = site.config.pilots.max_pilots
    own = qos(slurm, site.config)
    own_limits = own.limits if own and site.config.pilots.qos is None else {}
    counts = [(name, int(text)) for each in (*_owner_limits(slurm), own_limits) for name, text in each.items() if _counts(name, text)]
    tight = [f"{name}={limit}" for name, limit in counts if limit <= most]
    near = [f"{name}={limit}" for name, limit in counts if most < limit < 2 * most]
    fix = "pilots.max_pilots = half of the smallest, or a larger limit, or an account of their own for pilots (pilots.account)"
    if tight:
        yield harm(
            "job limits", f"{most} pilots (pilots.max_pilots) reach {', '.join(tight)}: the owner's primary jobs are refused or wait.", fix
        )
    elif near:
        yield advice("job limits", f"{most} pilots (pilots.max_pilots) take more than half of {', '.join(near)}.", fix)
    else:
        yield good("job limits", f"{most} pilots (pilots.max_pilots) leave the owner's own jobs room.")


def accounted(slurm: Slurm) -> bool:
    """Usage is recorded."""
    return setting(slurm, "AccountingStorageType") not in ("", "accounting_storage/none")


def enforced(slurm: Slurm) -> bool:
    """Limits of associations and QOS hold (AccountingStorageEnforce; "safe" implies "limits")."""
    words = {each.strip() for each in setting(slurm, "AccountingStorageEnforce").split(",")}
    return bool(words & {"limits", "safe", "all"})


def _free(site: Site, slurm: Slurm) -> bool:
    found = qos(slurm, site.config)
    return found is not None and found.usage_factor == 0.0


def _owner_limits(slurm: Slurm) -> list[Mapping[str, str]]:
    return [each.limits for each in slurm.associations or ()]


def _counts(name: str, text: str) -> bool:
    return name in JOB_LIMITS and text.isdigit()
