"""Every check of `commensal doctor` on a site where all is well, and on one where only that is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from commensald.config import Config, DaemonSection, PilotsSection
from commensald.doctor import Severity
from commensald.doctor.checks import examine, hurts
from commensald.doctor.facts import Association, Backfill, Host, Qos, Ring, Site, Slurm, Trial
from commensald.schedulers.slurm.partitions import Partition

HARM, FAULT, ADVICE, UNKNOWN, GOOD = Severity
SETTINGS = {
    "PreemptType": "preempt/partition_prio",
    "PreemptMode": "REQUEUE",
    "PreemptExemptTime": "00:00:00",
    "KillWait": "30 sec",
    "CompleteWait": "0 sec",
    "SchedulerType": "sched/backfill",
    "SchedulerParameters": "bf_interval=30,batch_sched_delay=1",
    "AccountingStorageType": "accounting_storage/slurmdbd",
    "AccountingStorageEnforce": "associations,limits,qos",
    "PriorityType": "priority/multifactor",
    "PriorityWeightFairShare": "0",
    "PrivateData": "none",
    "Prolog": "(null)",
    "SuspendTime": "INFINITE",
}


def partition(name: str, tier: int, **changes: Any) -> Partition:  # noqa: ANN401 - fields of all types
    fields = {
        "default": name == "primary",
        "up": True,
        "grace_seconds": 0.0,
        "most_seconds": None,
        "preempt_modes": frozenset({"OFF"}),
        "nodes": ("n1", "n2"),
    }
    return Partition(name=name, tier=tier, **{**fields, **changes})


PRIMARY, SCAVENGER = partition("primary", 10), partition("scavenger", 1, grace_seconds=30.0, preempt_modes=frozenset({"REQUEUE"}))
QOS = (Qos(name="normal"), Qos(name="scav", usage_factor=0.0))
SLURM = Slurm(
    version="24.11.5",
    settings=SETTINGS,
    partitions={"primary": PRIMARY, "scavenger": SCAVENGER},
    qos=QOS,
    associations=(Association(account="a", user="me", default_qos="normal"), Association(account="a")),
    backfill=Backfill(cycle_seconds=0.01, depth=100),
    clock_ahead_seconds=0.3,
    hosts={"n1": "10.0.0.1", "n2": "10.0.0.2"},
)
HOST = Host(
    address="10.0.0.9",
    folder_type="lustre",
    folder_shared=True,
    tried=2,
    addresses=frozenset({"127.0.0.1", "10.0.0.9"}),
    ring=Ring(seconds=0.5),
)
CONFIG = Config(
    daemon=DaemonSection(state="/s", socket="/s/s"),
    pilots=PilotsSection(folder="/shared/p", partition="scavenger", qos="scav", max_pilots=64),
)
SITE = Site(config=CONFIG, owner="me", host=HOST, slurm=SLURM, standing=2)
replace = msgspec.structs.replace


def slurm(settings: Mapping[str, str] | None = None, **changes: Any) -> Site:  # noqa: ANN401
    return replace(SITE, slurm=replace(SLURM, settings={**SETTINGS, **(settings or {})}, **changes))


def scavenger(**changes: Any) -> Site:  # noqa: ANN401
    return slurm(partitions={"primary": PRIMARY, "scavenger": replace(SCAVENGER, **changes)})


def host(**changes: Any) -> Site:  # noqa: ANN401
    return replace(SITE, host=replace(HOST, **changes))


def pilots(site: Site = SITE, **changes: Any) -> Site:  # noqa: ANN401
    return replace(site, config=replace(CONFIG, pilots=replace(CONFIG.pilots, **changes)))


def limited(**limits: str) -> Site:
    return slurm(associations=(Association(account="a", user="me", default_qos="normal", limits=limits),))


def tried(**changes: Any) -> Site:  # noqa: ANN401
    trial = Trial(node="n1", folder_seen=True, reached=True, start_seconds=0.2, end_seconds=0.4, ring=Ring(seconds=0.5))
    return replace(SITE, trial=replace(trial, **changes))


BY_QOS = {"PreemptType": "preempt/qos"}
FAIR = {"PriorityWeightFairShare": "1000"}


def test_where_all_is_well_nothing_is_to_be_done() -> None:
    findings = examine(SITE)
    assert [each for each in findings if each.severity is not GOOD] == []
    assert len(findings) >= 15
    assert not any(each.fix for each in findings)


@pytest.mark.parametrize(
    ("site", "severity", "check", "says"),
    [
        (slurm({"PreemptType": "preempt/none"}), HARM, "preempt type", "never preempts"),
        (slurm(partitions={"primary": replace(PRIMARY, tier=1), "scavenger": SCAVENGER}), HARM, "partition tier", "primary"),
        (slurm(partitions={"scavenger": SCAVENGER}), HARM, "partition tier", "only partition"),
        (slurm(partitions={"primary": PRIMARY}), FAULT, "partition", "scavenger does not exist"),
        (slurm(BY_QOS), HARM, "qos order", "normal"),
        (slurm(BY_QOS, qos=None), UNKNOWN, "qos order", "cannot be seen"),
        (
            scavenger(preempt_modes=frozenset({"OFF"})),
            HARM,
            "preempt mode",
            "OFF",
        ),
        (
            scavenger(preempt_modes=frozenset({"SUSPEND", "GANG"})),
            HARM,
            "preempt mode",
            "keeps its memory",
        ),
        (slurm({"PreemptExemptTime": "00:05:00"}), HARM, "preempt exempt time", "300 s"),
        (slurm(oversubscribe={"primary": "FORCE:4"}), HARM, "sharing", "primary"),
        (scavenger(grace_seconds=0.0), ADVICE, "grace", "30 s after SIGTERM"),
        (slurm({"SchedulerParameters": "preempt_send_user_signal"}), ADVICE, "preempt_send_user_signal", "does not read it"),
        (pilots(slurm(FAIR), qos=None), HARM, "fair-share", "1000"),
        (slurm(FAIR, qos=None), UNKNOWN, "fair-share", "cannot be seen"),
        (pilots(limited(GrpTRESMins="cpu=1000"), qos=None), HARM, "budgets", "GrpTRESMins=cpu=1000"),
        (limited(GrpTRESRunMins="cpu=1000"), HARM, "budgets", "GrpTRESRunMins"),
        (limited(MaxJobs="64"), HARM, "job limits", "MaxJobs=64"),
        (limited(MaxSubmit="10", GrpJobs="1000"), HARM, "job limits", "MaxSubmit=10"),
        (limited(MaxSubmit="100"), ADVICE, "job limits", "more than half of MaxSubmit=100"),
        (slurm({"SchedulerType": "sched/builtin"}), ADVICE, "bf_interval", "does not backfill"),
        (slurm({"SchedulerParameters": "bf_continue,bf_interval=120,batch_sched_delay=0"}), ADVICE, "bf_interval", "120 s"),
        (slurm({"SchedulerParameters": "bf_interval=30"}), HARM, "batch_sched_delay", "up to 4 s later"),
        (
            replace(SITE, config=replace(CONFIG, daemon=replace(CONFIG.daemon, poll_seconds=0.5))),
            ADVICE,
            "poll_seconds",
            "every 0.5 s",
        ),
        (slurm(backfill=Backfill(cycle_seconds=29.0, depth=50.0)), HARM, "standing pilots", "longer than bf_interval"),
        (replace(slurm(backfill=Backfill(cycle_seconds=9.0, depth=10.0)), standing=5), ADVICE, "standing pilots", "much of bf_interval"),
        (slurm(backfill=None), UNKNOWN, "standing pilots", "no backfill pass"),
        (slurm(backfill=Backfill(cycle_seconds=0.1, depth=499.0)), ADVICE, "bf_max_job_test", "looks at 500"),
        (slurm({"CompleteWait": "32 sec"}), ADVICE, "CompleteWait", "32 s"),
        (slurm({"Prolog[0]": "/etc/p", "EpilogSlurmctld": "/etc/e"}), ADVICE, "prolog and epilog", "Prolog, EpilogSlurmctld"),
        (tried(end_seconds=4.0), HARM, "prolog and epilog", "free 4.0 s after"),
        (tried(folder_seen=False, error="no such folder"), FAULT, "pilots' folder", "no such folder"),
        (tried(reached=False), FAULT, "route", "could not connect to this host at 10.0.0.9"),
        (tried(ring=Ring(error="no libmpi")), FAULT, "trial job", "no libmpi"),
        (replace(SITE, trial=Trial(error="did not start")), UNKNOWN, "trial job", "did not start."),
        (slurm({"SuspendProgram": "/sbin/off", "SuspendTime": "600 sec"}), ADVICE, "power saving", "600 sec"),
        (slurm({"PrivateData": "accounts,jobs"}), FAULT, "PrivateData", "who waits for a node"),
        (slurm(refusal="Invalid qos specification"), FAULT, "permission", "Invalid qos specification"),
        (scavenger(up=False), FAULT, "permission", "not up"),
        (slurm(clock_ahead_seconds=-90.0), ADVICE, "clock", "90 s behind"),
        (slurm(clock_ahead_seconds=None), UNKNOWN, "clock", "cannot be seen"),
        (slurm(version="21.08.8"), FAULT, "version", "21.08.8"),
        (host(pyslurm="25.11.2"), ADVICE, "pyslurm", "25.11.2"),
        (host(folder_shared=False, folder_type="tmpfs"), FAULT, "pilots' folder", "tmpfs"),
        (host(folder_shared=False, folder_type="xfs"), UNKNOWN, "pilots' folder", "xfs"),
        (host(address="127.0.0.1"), FAULT, "route", "127.0.0.1"),
        (host(unreachable=("n2",)), FAULT, "route", "1 of 2 nodes cannot be reached from here: n2."),
        (host(tried=0), UNKNOWN, "route", "No node"),
        (host(ring=Ring(error="no such library")), FAULT, "MPI", "no such library"),
        (host(ring=None), UNKNOWN, "MPI", "--no-ring"),
        (replace(SITE, slurm=None, silence="scontrol: cannot be started"), FAULT, "Slurm", "cannot be started"),
    ],
)
def test_what_is_wrong_is_said_with_its_fix(site: Site, severity: Severity, check: str, says: str) -> None:
    findings = [each for each in examine(site) if each.check == check and each.severity is severity]
    assert len(findings) == 1, examine(site)
    assert says in findings[0].words
    assert findings[0].fix
    assert hurts(examine(site)) == any(each.severity is HARM for each in examine(site))


@pytest.mark.parametrize(
    "site",
    [
        slurm(BY_QOS, qos=(Qos(name="normal", preempts=frozenset({"scav"})), replace(QOS[1], grace_seconds=20.0))),
        slurm(FAIR),
        limited(GrpTRESMins="cpu=1000"),
        limited(MaxJobs="500"),
        slurm({"AccountingStorageEnforce": "none"}, associations=(Association(account="a", user="me", limits={"MaxJobs": "1"}),)),
        slurm({**FAIR, "AccountingStorageType": "accounting_storage/none"}, qos=None, associations=None),
        slurm({"SuspendProgram": "/sbin/off", "SuspendTime": "-1"}),
        slurm({"PrivateData": "jobs"}, operator=True),
        slurm({"SlurmctldParameters": "preempt_send_user_signal"}, version="22.05.8"),
        slurm(oversubscribe={"primary": "FORCE:1", "scavenger": "YES:4"}),
        pilots(
            slurm(partitions={"primary": replace(PRIMARY, default=False), "scavenger": replace(SCAVENGER, default=True)}), partition=None
        ),
        host(pyslurm="24.11.0"),
        tried(),
        replace(tried(), slurm=replace(SLURM, settings={**SETTINGS, "Epilog": "/etc/e"})),
        replace(
            slurm(hosts={"n1": "127.0.0.1", "n2": "127.0.0.1"}),
            host=replace(HOST, address="127.0.0.1", folder_shared=False, folder_type="ext4"),
        ),
    ],
)
def test_what_only_looks_wrong_is_good(site: Site) -> None:
    assert [each for each in examine(site) if each.severity is not GOOD] == []


def test_the_worst_comes_first() -> None:
    found = [each.severity for each in examine(replace(slurm({"PreemptType": "preempt/none", "CompleteWait": "9 sec"}), host=HOST))]
    assert found == sorted(found, key=list(Severity).index)
    assert found[0] is HARM
