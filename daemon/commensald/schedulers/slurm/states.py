"""Slurm's words for the states of jobs and nodes, and what each means to us: total tables over slurm.h, 22.05 to 26.05."""

from __future__ import annotations

import re
from collections.abc import Iterable

from commensald.cluster import JobState, NodeState

JOBS: dict[str, JobState] = {
    # base states
    "PENDING": JobState.PENDING,
    "RUNNING": JobState.RUNNING,
    "SUSPENDED": JobState.SUSPENDED,
    "COMPLETED": JobState.ENDED,
    "CANCELLED": JobState.ENDED,
    "FAILED": JobState.ENDED,
    "TIMEOUT": JobState.ENDED,
    "NODE_FAIL": JobState.ENDED,
    "PREEMPTED": JobState.ENDED,
    "BOOT_FAIL": JobState.ENDED,
    "DEADLINE": JobState.ENDED,
    "OUT_OF_MEMORY": JobState.ENDED,
    # flags, which scontrol shows instead of the base state
    "COMPLETING": JobState.COMPLETING,
    "CONFIGURING": JobState.RUNNING,  # it has its nodes already
    "EXPEDITING": JobState.PENDING,
    "LAUNCH_FAILED": JobState.HELD,
    "POWER_UP_NODE": JobState.RUNNING,
    "RECONFIG_FAIL": JobState.HELD,
    "REQUEUED": JobState.PENDING,
    "REQUEUE_FED": JobState.PENDING,
    "REQUEUE_HOLD": JobState.HELD,
    "RESIZING": JobState.RUNNING,
    "RESV_DEL_HOLD": JobState.HELD,
    "REVOKED": JobState.ENDED,  # a federation runs it elsewhere
    "SIGNALING": JobState.RUNNING,
    "SPECIAL_EXIT": JobState.HELD,
    "STAGE_OUT": JobState.COMPLETING,
    "STOPPED": JobState.SUSPENDED,  # stopped by a signal, its resources kept
}

_STRONGEST = (
    JobState.UNKNOWN,
    JobState.COMPLETING,
    JobState.SUSPENDED,
    JobState.HELD,
    JobState.RUNNING,
    JobState.PENDING,
    JobState.ENDED,
)
_HOLDS = frozenset({"JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue", "Dependency", "DependencyNeverSatisfied"})
"""Reasons (squeue(1), JOB REASON CODES) for which a pending job is no claim on a node until something else has happened."""
_BY_SUFFIX = {
    "*": "NOT_RESPONDING",
    "$": "MAINTENANCE",
    "^": "REBOOT_ISSUED",
    "@": "REBOOT_REQUESTED",
    "#": "POWERING_UP",
    "%": "POWERING_DOWN",
    "~": "POWERED_DOWN",
    "!": "POWER_DOWN",
    "-": "PLANNED",
}
_SHORT_FLAGS = {"DRAINED": "DRAIN", "DRAINING": "DRAIN", "FAILING": "FAIL", "MAINT": "MAINTENANCE", "REBOOT": "REBOOT_REQUESTED"}
_SHORT_BASES = {"ALLOC": "ALLOCATED", "MIX": "MIXED"}
_STATE = re.compile(r"([A-Z_]*)([*$^@#%~!-]*)")


def job_state(words: Iterable[str], reason: str = "") -> JobState:
    """The state that these words give together; a word that nobody knows makes it UNKNOWN, so that the job counts as present."""
    told = {JOBS.get(_first(word), JobState.UNKNOWN) for word in words} or {JobState.UNKNOWN}
    state = next(each for each in _STRONGEST if each in told)
    return JobState.HELD if state is JobState.PENDING and reason in _HOLDS else state


def _first(word: str) -> str:
    """Without what sacct adds (``CANCELLED by 1000``)."""
    return word.upper().partition(" BY ")[0]


def node_state(text: str) -> tuple[NodeState, frozenset[str]]:
    """Base state and flags of ``BASE+FLAG+FLAG``, each perhaps with one of sinfo's suffixes (``IDLE*``, ``MIXED-+DRAIN``).

    A base that nobody knows gives UNKNOWN and stands among the flags, where it keeps the node from being used.
    """
    state, flags = NodeState.UNKNOWN, set[str]()
    for position, part in enumerate(text.upper().rstrip("+").split("+")):
        match = _STATE.fullmatch(part)
        word, suffixes = (match[1], match[2]) if match else (part, "")
        flags |= {_BY_SUFFIX[each] for each in suffixes}
        base = _SHORT_BASES.get(word, word)
        if position == 0 and base in NodeState.__members__:
            state = NodeState[base]
        else:
            flags.add(_SHORT_FLAGS.get(word, word))
    return state, frozenset(flags - {""})
