"""The attributes of a job that we read (pbs_job_attributes(7B)), the same whether they come from JSON or from text."""

from __future__ import annotations

from commensald.schedulers.pbs.records import Record

PILOT = "COMMENSAL_PILOT"
"""The variable that makes a job a pilot; its value is the pilot's uuid."""

_TIMES = "ctime etime mtime qtime stime Execution_Time estimated.start_time"
_PLACES = "exec_host exec_vnode estimated.exec_vnode queue"
_ASKED = "Resource_List.nodect Resource_List.ncpus Resource_List.place Resource_List.walltime"
_AMOUNTS = "resources_used.walltime Priority run_count substate max_run_subjobs"
_NAMES = "Job_Name Job_Owner job_state Account_Name array project"
KEPT = frozenset(f"{_TIMES} {_PLACES} {_ASKED} {_AMOUNTS} {_NAMES} Variable_List.{PILOT}".split())
NAMES = frozenset(name for key in KEPT for name in key.split("."))
"""The same, each part by itself."""

_NEEDED = frozenset({"Job_Owner", "job_state"})


def wanted(record: Record) -> Record:
    """What we read of a job; the rest is other people's."""
    return {key: value for key, value in record.items() if key in KEPT}


def says_enough(record: Record) -> bool:
    """Whether a damaged record still says what a job is about: whose it is, and its state."""
    return record.keys() >= _NEEDED
