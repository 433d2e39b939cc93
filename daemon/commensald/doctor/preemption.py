"""Whether a primary job gets its nodes back at once: preemption's type, order, mode, exemption, grace, signals, sharing."""

from __future__ import annotations

from collections.abc import Iterator

from commensald.doctor import Finding, advice, fault, good, harm, unknown
from commensald.doctor.facts import Site, Slurm
from commensald.doctor.pilots import by_qos, grace_seconds, partition, qos, rivals
from commensald.doctor.settings import seconds, setting, word
from commensald.schedulers.slurm.settings import sends_user_signal

STOPS_AT_ONCE = frozenset({"REQUEUE", "CANCEL"})

INHERIT = frozenset({"", "CLUSTER", "N/A"})
"""PreemptMode words that leave it to the cluster's."""


def preempt_type(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """Slurm preempts at all."""
    kind = setting(slurm, "PreemptType") or "preempt/none"
    if kind == "preempt/none":
        yield harm(
            "preempt type",
            "Slurm never preempts here (PreemptType=preempt/none): a primary job waits until a pilot ends by itself.",
            "slurm.conf: PreemptType=preempt/partition_prio, PreemptMode=REQUEUE, and a partition of lower PriorityTier for pilots; "
            "restart slurmctld.",
        )
    else:
        yield good("preempt type", f"Slurm preempts (PreemptType={kind}).")


def tiers(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """Every partition on the pilots' nodes stands above theirs."""
    own = partition(slurm, site.config)
    if own is None:
        wanted = site.config.pilots.partition or "the default partition"
        yield fault("partition", f"There is no partition for pilots: {wanted} does not exist.", "Name one that exists in pilots.partition.")
    elif setting(slurm, "PreemptType") == "preempt/partition_prio":
        others = rivals(slurm, own)
        level = sorted(each.name for each in others if each.tier <= own.tier)
        fix = f"slurm.conf: give {own.name} a PriorityTier below that of every partition on its nodes; scontrol reconfigure."
        if not others:
            yield harm(
                "partition tier",
                f"{own.name} is the only partition on its nodes, so primary jobs run in it too and cannot preempt pilots.",
                f"slurm.conf: a second partition on the same nodes with a PriorityTier below {own.tier} and PreemptMode=REQUEUE, "
                "and its name in pilots.partition.",
            )
        elif level:
            yield harm(
                "partition tier",
                f"Jobs in {', '.join(level)} cannot preempt pilots: their PriorityTier is not above the {own.tier} of {own.name}.",
                fix,
            )
        else:
            yield good("partition tier", f"{own.name} (PriorityTier {own.tier}) is below all partitions on its nodes.")


def qos_order(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """Where preemption goes by QOS, every other QOS preempts the pilots'."""
    if not by_qos(slurm):
        return
    own = qos(slurm, site.config)
    if own is None:
        yield unknown(
            "qos order", "Preemption goes by QOS, and the pilots' QOS cannot be seen.", "Set pilots.qos to one that sacctmgr shows."
        )
        return
    weak = sorted(each.name for each in slurm.qos or () if each.name != own.name and own.name not in each.preempts)
    if weak:
        yield harm(
            "qos order",
            f"Jobs with QOS {', '.join(weak)} cannot preempt pilots, which have QOS {own.name}.",
            "; ".join(f"sacctmgr modify qos {name} set preempt+={own.name}" for name in weak),
        )
    else:
        yield good("qos order", f"Every QOS preempts {own.name}.")


def mode(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """A preempted pilot ends, rather than being suspended or left alone."""
    words = effective_modes(site, slurm)
    found = ",".join(sorted(words))
    if words & STOPS_AT_ONCE:
        yield good("preempt mode", f"A preempted pilot ends (PreemptMode={found}).")
        return
    what = "keeps its memory and its GPUs while it is suspended" if "SUSPEND" in words else "is left running"
    yield harm(
        "preempt mode",
        f"A preempted pilot {what} (PreemptMode={found or 'OFF'}).",
        "slurm.conf: PreemptMode=REQUEUE for the cluster and for the pilots' partition (or QOS).",
    )


def effective_modes(site: Site, slurm: Slurm) -> frozenset[str]:
    """PreemptMode as it holds for pilots, in upper case (slurm.conf(5))."""
    cluster = frozenset(setting(slurm, "PreemptMode").upper().split(","))
    found = qos(slurm, site.config) if by_qos(slurm) else partition(slurm, site.config)
    own = found.preempt_modes if found else frozenset()
    return own - INHERIT or cluster


def exemption(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """No time during which a young pilot cannot be preempted."""
    own = qos(slurm, site.config)
    exempt = (own.exempt_seconds if own else 0.0) or seconds(slurm, "PreemptExemptTime")
    if exempt > 0:
        yield harm(
            "preempt exempt time",
            f"A pilot cannot be preempted during its first {exempt:.0f} s (PreemptExemptTime): a primary job waits that long.",
            "slurm.conf: PreemptExemptTime=-1, or sacctmgr modify qos <the pilots'> set preemptexempttime=-1.",
        )


def grace(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """Time to save when all members of a ring are preempted at once."""
    left, wait = grace_seconds(slurm, site.config), seconds(slurm, "KillWait")
    if left > 0:
        yield good("grace", f"A preempted pilot may use up to {left:.0f} s to save; it leaves as soon as it can.")
        return
    yield advice(
        "grace",
        f"GraceTime is 0: a preempted pilot is killed {wait:.0f} s after SIGTERM (KillWait). If all members of a training are preempted "
        "together and cannot save in that time, the steps since its last checkpoint are lost.",
        "slurm.conf: GraceTime=30 on the pilots' partition, or sacctmgr modify qos <the pilots'> set gracetime=30. "
        "Pilots leave within a second all the same.",
    )


def user_signal(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """Where preempt_send_user_signal is written decides whether Slurm reads it."""
    if word(slurm, "SchedulerParameters", "preempt_send_user_signal") and not sends_user_signal(slurm.settings):
        yield advice(
            "preempt_send_user_signal",
            "It stands in SchedulerParameters, where Slurm does not read it. Pilots do without: their steps get SIGTERM.",
            "slurm.conf: PreemptParameters=send_user_signal, or in older Slurm SlurmctldParameters=preempt_send_user_signal.",
        )
        return
    first = "SIGUSR1" if sends_user_signal(slurm.settings) else "SIGTERM"
    yield good("preempt_send_user_signal", f"A preempted pilot gets {first} first; it treats SIGTERM and SIGUSR1 alike.")


def sharing(site: Site, slurm: Slurm) -> Iterator[Finding]:
    """No primary job is put beside a pilot on the same cores."""
    own = partition(slurm, site.config)
    forced = [each.name for each in (own, *rivals(slurm, own)) if _forced(slurm.oversubscribe.get(each.name, ""))] if own else []
    if forced:
        yield harm(
            "sharing",
            f"Slurm puts jobs on the same cores in {', '.join(forced)} (OverSubscribe=FORCE): a primary job may run beside a pilot.",
            "slurm.conf: OverSubscribe=NO or EXCLUSIVE on these partitions.",
        )


def _forced(oversubscribe: str) -> bool:
    kind, _, jobs = oversubscribe.upper().partition(":")
    return kind == "FORCE" and jobs != "1"
