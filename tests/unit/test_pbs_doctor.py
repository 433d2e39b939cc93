"""Every check of `commensal doctor` of a PBS on a site where all is well, and on one where only that is wrong."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from pbs_captures import capture, section, shown_queues

from commensald.config import Config, PilotsSection, SchedulerSection
from commensald.doctor import Severity
from commensald.doctor.checks import examine, hurts
from commensald.doctor.facts import Host, Pbs, Ring, Site, Trial
from commensald.doctor.pbs_gather import listening
from commensald.doctor.pbs_probe import seen
from commensald.doctor.probe import Seen
from commensald.schedulers.pbs import site as pbs
from commensald.schedulers.pbs import text
from commensald.schedulers.pbs.queues import Queue

HARM, FAULT, ADVICE, UNKNOWN, GOOD = Severity
SERVER = {**section("qstat_B.json", "Server")["pbs-s"], "backfill_depth": "20"}
SCHED = text.attributes(capture("list_sched.txt"))
QUEUES = {name: each for name, each in shown_queues().items() if name != "workq"}
PBS = Pbs(site=pbs.Site(server=SERVER, sched=SCHED, queues=QUEUES, pilots=QUEUES["scavq"]), jobs=9, hosts={"m1": "10.0.0.1"})
HOST = Host(address="10.0.0.9", folder_type="nfs", folder_shared=True, tried=2, ring=Ring(seconds=0.5))
CONFIG = Config(scheduler=SchedulerSection(kind="pbs"), pilots=PilotsSection(folder="/shared/pilots", partition="scavq"))


def site(**changes: Any) -> Site:  # noqa: ANN401 - fields of all types
    """All is well but for ``changes`` of what PBS says."""
    return Site(config=CONFIG, owner="us", host=HOST, pbs=msgspec.structs.replace(PBS, site=msgspec.structs.replace(PBS.site, **changes)))


def severities(found: Site) -> dict[str, Severity]:
    return {each.check: each.severity for each in reversed(examine(found))}


def queue(name: str, priority: int, **changes: Any) -> Queue:  # noqa: ANN401 - fields of all types
    return Queue(name=name, priority=priority, **{"enabled": True, "started": True, **changes})


def with_pilots(**changes: Any) -> Site:  # noqa: ANN401 - fields of all types
    own = msgspec.structs.replace(QUEUES["scavq"], **changes)
    return site(pilots=own, queues={**QUEUES, "scavq": own})


def test_where_all_is_well_only_the_file_on_the_servers_host_is_unknown() -> None:
    found = severities(site())
    assert {check for check, severity in found.items() if severity is not GOOD} == {"sched_config"}
    assert not hurts(examine(site()))


WITH_QOS = msgspec.structs.replace(CONFIG, pilots=msgspec.structs.replace(CONFIG.pilots, qos="idle"))
DAMAGED = msgspec.structs.replace(PBS, repaired=("1.s",), unreadable=("2.s",))
WRONG = {
    "no queue": (site(pilots=None), "queue", FAULT),
    "a routing queue": (with_pilots(routes=True), "queue", FAULT),
    "a stopped queue": (with_pilots(started=False), "queue", FAULT),
    "a queue of others": (with_pilots(users="ann@*,-us@*,+"), "queue", FAULT),
    "pilots in an express queue": (with_pilots(priority=150), "queue priority", HARM),
    "a queue that cannot preempt": (site(queues={**QUEUES, "workq": queue("workq", 0)}), "queue priority", HARM),
    "one queue for all": (site(queues={"scavq": QUEUES["scavq"]}), "queue priority", HARM),
    "no express queues": (site(sched={**SCHED, "preempt_prio": "fairshare, normal_jobs"}), "preempt_prio", HARM),
    "suspension": (site(sched={**SCHED, "preempt_order": "SCR"}), "preempt_order", HARM),
    "suspension towards the end": (site(sched={**SCHED, "preempt_order": "R 50 S"}), "preempt_order", HARM),
    "checkpointing": (site(sched={**SCHED, "preempt_order": "C"}), "preempt_order", HARM),
    "no qmgr": (site(sched=None), "preempt_order", UNKNOWN),
    "no time to save": (with_pilots(kill_delay_seconds=2.0), "kill_delay", ADVICE),
    "hidden jobs": (site(server={**SERVER, "query_other_jobs": "False"}), "query_other_jobs", FAULT),
    "one job planned": (site(server={key: value for key, value in SERVER.items() if key != "backfill_depth"}), "backfill_depth", ADVICE),
    "limits": (site(server={**SERVER, "max_run": "[u:PBS_GENERIC=4]"}), "job limits", ADVICE),
    "an old PBS": (site(server={**SERVER, "pbs_version": "13.1.0"}), "version", FAULT),
    "a quality of service": (msgspec.structs.replace(site(), config=WITH_QOS), "qos", ADVICE),
    "damage": (
        Site(config=CONFIG, owner="us", host=HOST, pbs=msgspec.structs.replace(PBS, repaired=("1.s",), unreadable=("2.s",))),
        "qstat",
        ADVICE,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found_and_has_a_fix(name: str) -> None:
    found, check, severity = WRONG[name]
    (finding,) = (each for each in examine(found) if each.check == check and each.severity is severity)
    assert finding.fix
    assert hurts(examine(found)) == (severity is HARM)


def test_a_queue_of_a_reservation_is_nobodys_primary_queue() -> None:
    assert severities(site(queues={**QUEUES, "R12": queue("R12", 0)}))["queue priority"] is GOOD


@pytest.mark.parametrize(("users", "severity"), [("us@*", GOOD), ("+", GOOD), ("ann,+us@login", GOOD), ("ann", FAULT)])
def test_who_may_use_a_queue(users: str, severity: Severity) -> None:
    assert severities(with_pilots(users=users))["queue"] is severity


def test_a_fix_names_the_queue_to_be_changed() -> None:
    found = examine(site(queues={**QUEUES, "workq": queue("workq", 0)}))
    assert "qmgr -c 'set queue workq Priority = 150'" in {each.fix for each in found}


def test_a_pbs_that_does_not_answer_is_said() -> None:
    found = Site(config=CONFIG, owner="us", host=HOST, silence="qstat: cannot connect to server")
    (finding,) = (each for each in examine(found) if each.severity is FAULT)
    assert "scheduler.pbs_conf" in finding.fix


def test_what_is_seen_of_a_trial_job() -> None:
    running = {"job_state": "R", "exec_host": "n1/0*4", "stime": "Mon Nov 30 01:07:09 2026"}
    assert seen(running) == Seen("R", "1796000829.0", "n1")
    assert seen({"job_state": "Q"}) == Seen("Q", "", "")


def test_a_slow_epilogue_hurts() -> None:
    slow = Trial(node="n1", folder_seen=True, reached=True, start_seconds=0.5, end_seconds=3.0, ring=Ring(seconds=0.4))
    found = msgspec.structs.replace(site(), trial=slow)
    assert severities(found)["prolog and epilog"] is HARM
    assert severities(found)["trial job"] is GOOD


def test_where_the_moms_listen() -> None:
    assert listening(section("pbsnodes_a.json", "nodes")) == {"pbs-m1": ("pbs-m1", 15002), "pbs-m2": ("pbs-m2", 15002)}
    assert listening({"n1": {"Mom": "n1.cluster", "state": "down"}, "n2": {"Mom": "n2.cluster", "state": "free"}}) == {
        "n2.cluster": ("n2.cluster", 15002)
    }
