"""Captures of real clusters as the daemon would have got them, and their JSON as a second opinion on the same queue."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from commensald.cluster import Job, Node, Reservation
from commensald.schedulers.slurm import settings, text
from commensald.schedulers.slurm.jobs import jobs
from commensald.schedulers.slurm.nodes import nodes
from commensald.schedulers.slurm.partitions import Partition, partitions
from commensald.schedulers.slurm.records import Record
from commensald.schedulers.slurm.reservations import reservations

FOLDER = Path(__file__).parents[1] / "fixtures" / "slurm"
VERSIONS = ("22.05.8", "24.11.5", "26.05.5")
WITH_JSON = VERSIONS[1:]
MARK = "~c0ffee"
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def marked(captured: str, mark: str = MARK) -> str:
    """As with ``SLURM_TIME_FORMAT=%s<mark>``: the captures were made in UTC with Slurm's standard format."""
    return _INSTANT.sub(lambda found: f"{datetime.fromisoformat(found[0] + '+00:00').timestamp():.0f}{mark}", captured)


def capture(version: str, name: str) -> str:
    """One capture."""
    return (FOLDER / version / name).read_text(encoding="utf-8")


def show(version: str, what: str) -> str:
    """``scontrol -o show job|node|part|res`` with marked times."""
    return marked(capture(version, f"scontrol_{what}_o.txt"))


def records(version: str, what: str, first: str) -> list[Record]:
    return [{key: value.removesuffix(MARK) for key, value in each.items()} for each in text.split(show(version, what), first)]


def shown_jobs(version: str) -> tuple[Job, ...]:
    return jobs(text.jobs(show(version, "job"), MARK))


def shown_nodes(version: str) -> tuple[Node, ...]:
    return nodes(records(version, "node", "NodeName"))


def shown_reservations(version: str) -> tuple[Reservation, ...]:
    return reservations(records(version, "res", "ReservationName"))


def shown_partitions(version: str) -> dict[str, Partition]:
    return partitions(records(version, "part", "PartitionName"))


def shown_config(version: str) -> Mapping[str, str]:
    return settings.parse(marked(capture(version, "scontrol_config.txt")), MARK)


def from_json(version: str, what: str) -> list[dict[str, str]]:
    """``scontrol --json show job|node|res`` (data_parser v0.0.42 on 24.11, v0.0.45 on 26.05) in the words of ``scontrol -o``."""
    key, read = {"job": ("jobs", _job), "node": ("nodes", _node), "res": ("reservations", _reservation)}[what]
    return [read(each) for each in json.loads(capture(version, f"scontrol_{what}.json"))[key]]


def _number(given: Mapping[str, Any]) -> str:
    """``infinite`` before ``set``: an unlimited number is not set."""
    return "UNLIMITED" if given["infinite"] else str(given["number"]) if given["set"] else ""


def _job(each: Mapping[str, Any]) -> dict[str, str]:
    array = {"ArrayJobId": _number(each["array_job_id"]), "ArrayTaskId": each["array_task_string"] or _number(each["array_task_id"])}
    return {
        "JobId": str(each["job_id"]),
        **(array if array["ArrayTaskId"] else {}),
        "JobName": each["name"],
        "UserId": f"{each['user_name']}({each['user_id']})",
        "Account": each["account"],
        "JobState": "+".join(each["job_state"]),
        "Reason": each["state_reason"],
        "Partition": each["partition"],
        "NodeList": each["nodes"],
        "NumNodes": _number(each["node_count"]),
        "SubmitTime": _number(each["submit_time"]),
        "EligibleTime": _number(each["eligible_time"]),
        "StartTime": _number(each["start_time"]),
        "EndTime": _number(each["end_time"]),
        "PreemptTime": _number(each["preempt_time"]),
        "TimeLimit": _number(each["time_limit"]),
        "Priority": _number(each["priority"]),
        "SchedNodeList": each["scheduled_nodes"],
        "Comment": each["comment"],
    }


def _node(each: Mapping[str, Any]) -> dict[str, str]:
    return {
        "NodeName": each["name"],
        "State": "+".join(each["state"]),
        "CPUAlloc": str(each["alloc_cpus"]),
        "CPUTot": str(each["cpus"]),
        "RealMemory": str(each["real_memory"]),
        "CfgTRES": each["tres"],
        "AllocTRES": each["tres_used"],
        "ActiveFeatures": ",".join(each["active_features"]),
        "Partitions": ",".join(each["partitions"]),
    }


def _reservation(each: Mapping[str, Any]) -> dict[str, str]:
    return {
        "ReservationName": each["name"],
        "StartTime": _number(each["start_time"]),
        "EndTime": _number(each["end_time"]),
        "Nodes": each["node_list"],
        "Flags": ",".join(each["flags"]),
    }
