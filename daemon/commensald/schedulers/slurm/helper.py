"""``python -m commensald.schedulers.slurm.helper``: the process that holds pyslurm, and the only place that imports it.

It has a process of its own because its calls keep the interpreter's lock for as long as the controller takes, because libslurm ends the
process by itself (``fatal:``), and because it is under the GPL. On stdin it reads what is asked for, one word a line (jobs, nodes,
reservations, partitions); on stdout it first says its version, then answers each word with one line of JSON: records in ``scontrol``'s
words, or an error. What libslurm prints goes to stderr. The attributes are those of pyslurm 24.11 and later.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType

import msgspec

JOB = {
    "JobId": "id",
    "ArrayJobId": "array_id",
    "ArrayTaskThrottle": "array_tasks_parallel",
    "JobName": "name",
    "Account": "account",
    "Priority": "priority",
    "JobState": "state",
    "Reason": "state_reason",
    "TimeLimit": "time_limit",
    "SubmitTime": "submit_time",
    "EligibleTime": "eligible_time",
    "StartTime": "start_time",
    "EndTime": "end_time",
    "PreemptTime": "preempt_time",
    "Partition": "partition",
    "NodeList": "allocated_nodes",
    "SchedNodeList": "scheduled_nodes",
    "NumNodes": "num_nodes",
    "Comment": "comment",
}
NODE = {
    "NodeName": "name",
    "State": "state",
    "CPUAlloc": "allocated_cpus",
    "CPUTot": "total_cpus",
    "RealMemory": "real_memory",
    "ActiveFeatures": "active_features",
    "Partitions": "partitions",
}
RESERVATION = {"ReservationName": "name", "StartTime": "start_time", "EndTime": "end_time", "Nodes": "nodes"}
PARTITION = {
    "PartitionName": "name",
    "State": "state",
    "PriorityTier": "priority_tier",
    "GraceTime": "preemption_grace_time",
    "PreemptMode": "preempt_mode",
    "Nodes": "nodes",
}
FLAGS = {
    "IGNORE_RUNNING_JOBS": "IGNORE_JOBS",
    "MAINTENANCE": "MAINT",
    "NO_JOB_HOLD_AFTER_END": "NO_HOLD_JOBS_AFTER_END",
    "PARTITION_NODES_ONLY": "PART_NODES",
    "PURGE": "PURGE_COMP",
    "SPECIFIC_NODES": "SPEC_NODES",
    "STATIC_NODES": "STATIC",
    "USER_DELETION": "USER_DELETE",
}
"""Reservation flags that pyslurm calls otherwise than scontrol does."""
NUMBERS = frozenset({"Priority", "NumNodes", "CPUAlloc", "RealMemory", "PriorityTier", "GraceTime"})


class Reply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the helper's."""

    version: str | None = None
    records: list[dict[str, str]] | None = None
    error: str | None = None


def main() -> int:
    """Answer until stdin ends; 1 when pyslurm cannot be imported."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def say(reply: Reply) -> None:
        answers.write(msgspec.json.encode(reply) + b"\n")
        answers.flush()

    try:
        pyslurm = importlib.import_module("pyslurm")
    except ImportError as error:
        say(Reply(error=str(error)))
        return 1
    say(Reply(version=str(pyslurm.__version__)))
    for line in sys.stdin:
        try:
            say(Reply(records=list(ASKED[line.strip()](pyslurm))))
        except (pyslurm.RPCError, AttributeError) as error:  # an attribute that this version of pyslurm calls otherwise
            say(Reply(error=str(error)))
    return 0


def _jobs(pyslurm: ModuleType) -> Iterator[dict[str, str]]:
    for job in pyslurm.Jobs.load().values():
        own = {"UserId": f"{job.user_name}({job.user_id})", "ArrayTaskId": _text(job.array_tasks_waiting or job.array_task_id)}
        yield _record(job, JOB) | own


def _nodes(pyslurm: ModuleType) -> Iterator[dict[str, str]]:
    for node in pyslurm.Nodes.load().values():
        own = {"CfgTRES": f"gres/gpu={_gpus(node.configured_gres)}", "AllocTRES": f"gres/gpu={_gpus(node.allocated_gres)}"}
        yield _record(node, NODE) | own


def _reservations(pyslurm: ModuleType) -> Iterator[dict[str, str]]:
    for each in pyslurm.Reservations.load().values():
        repeated = [] if each.reoccurrence == "NO" else [str(each.reoccurrence)]
        yield _record(each, RESERVATION) | {"Flags": ",".join([*repeated, *(FLAGS.get(flag.name, flag.name) for flag in each.flags)])}


def _partitions(pyslurm: ModuleType) -> Iterator[dict[str, str]]:
    for each in pyslurm.Partitions.load().values():
        most = each.max_time if hasattr(each, "max_time") else each.max_time_limit  # its earlier name
        yield _record(each, PARTITION) | {"Default": "YES" if each.is_default else "NO", "MaxTime": _text(most)}


def _record(one: object, attributes: Mapping[str, str]) -> dict[str, str]:
    """The attributes under scontrol's keys; where pyslurm says ``None`` for zero, a number is "0"."""
    return {key: _text(_value(one, name)) or ("0" if key in NUMBERS else "") for key, name in attributes.items()}


def _value(one: object, name: str) -> object:
    """pyslurm knows only UTF-8 and gives up at anything else that a user named a job (PySlurm issues 33 and 71)."""
    try:
        return getattr(one, name)
    except UnicodeDecodeError as error:
        return error.object.decode(errors="replace")


def _gpus(gres: Mapping[str, int | str | Mapping[str, int | str]]) -> int:
    """GPUs in pyslurm's ``{"gpu:a100": 4}``, where a value may itself hold a ``count``."""
    counts = (value for name, value in gres.items() if name.partition(":")[0] == "gpu")
    return sum(int(value["count"] if isinstance(value, Mapping) else value) for value in counts)


def _text(value: object) -> str:
    """A value in scontrol's words."""
    if value is None:
        return ""
    return ",".join(map(str, value)) if isinstance(value, (list, tuple, set)) else str(value)


ASKED: dict[str, Callable[[ModuleType], Iterator[dict[str, str]]]] = {
    "jobs": _jobs,
    "nodes": _nodes,
    "reservations": _reservations,
    "partitions": _partitions,
}

if __name__ == "__main__":
    sys.exit(main())
