"""PBS's words for the states of jobs and nodes, and what each means to us: total tables.

Jobs: pbs_job_attributes(7B), job states and substates, and job.h (``JOB_SUBSTATE_*``). Nodes: pbs_node_attributes(7B), ``state``, and
pbs_internal.h (``ND_*``). Flags are Slurm's words, so that ``harvest.py`` has one table.
"""

from __future__ import annotations

from collections.abc import Collection

from commensald.cluster import JobState, NodeState

JOBS: dict[str, JobState] = {
    "B": JobState.PENDING,  # an array of which some job has begun
    "E": JobState.COMPLETING,
    "F": JobState.ENDED,
    "H": JobState.HELD,
    "M": JobState.ENDED,  # moved to another server
    "Q": JobState.PENDING,
    "R": JobState.RUNNING,
    "S": JobState.SUSPENDED,
    "T": JobState.PENDING,  # on its way to a queue or from one
    "U": JobState.SUSPENDED,  # a workstation's owner is back
    "W": JobState.PENDING,  # for its Execution_Time
    "X": JobState.ENDED,  # a job of an array
}

RERUN = frozenset({"60", "61", "62", "63"})
"""Substates of a running job that was told to end and will be queued again: preempted by R, or qrerun."""

NODES: dict[str, tuple[NodeState, str]] = {
    "free": (NodeState.IDLE, ""),
    "busy": (NodeState.IDLE, "BUSY"),  # its load is above max_load: no job starts
    "down": (NodeState.DOWN, ""),
    "initializing": (NodeState.IDLE, "POWERING_UP"),
    "job-busy": (NodeState.ALLOCATED, ""),
    "job-exclusive": (NodeState.ALLOCATED, ""),
    "job-sharing": (NodeState.MIXED, ""),
    "maintenance": (NodeState.IDLE, "MAINTENANCE"),
    "offline": (NodeState.IDLE, "DRAIN"),
    "offline_by_mom": (NodeState.IDLE, "DRAIN"),
    "powered-off": (NodeState.IDLE, "POWERED_DOWN"),
    "powering-down": (NodeState.IDLE, "POWERING_DOWN"),
    "powering-on": (NodeState.IDLE, "POWERING_UP"),
    "provisioning": (NodeState.ALLOCATED, "REBOOT_ISSUED"),  # another operating system is installed for a job
    "resv-exclusive": (NodeState.IDLE, "RESERVED"),
    "sleep": (NodeState.IDLE, "POWERED_DOWN"),
    "stale": (NodeState.IDLE, "NOT_RESPONDING"),  # its MOM does not speak of it any more
    "state-unknown": (NodeState.UNKNOWN, "NOT_RESPONDING"),
    "unresolvable": (NodeState.DOWN, ""),
    "wait-provisioning": (NodeState.ALLOCATED, "REBOOT_ISSUED"),
}
_WORST = (NodeState.DOWN, NodeState.UNKNOWN, NodeState.ALLOCATED, NodeState.MIXED, NodeState.IDLE)


def job_state(letter: str) -> JobState:
    """What the letter means; one that nobody knows makes the job present."""
    return JOBS.get(letter, JobState.UNKNOWN)


def node_state(text: str) -> tuple[NodeState, frozenset[str]]:
    """Base state and flags of ``offline,job-busy``; a word that nobody knows (``<various>``) is a flag, and keeps the node unused."""
    told = [NODES.get(word.strip().lower(), (NodeState.UNKNOWN, word.strip().upper())) for word in text.split(",")]
    return worst([state for state, _ in told]), frozenset(flag for _, flag in told if flag)


def worst(states: Collection[NodeState]) -> NodeState:
    """The one that leaves least of a node."""
    return next((each for each in _WORST if each in states), NodeState.UNKNOWN)
