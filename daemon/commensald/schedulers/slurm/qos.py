"""Qualities of service, where they decide who is preempted (``PreemptType=preempt/qos``): their grace replaces the partition's."""

from __future__ import annotations

from collections.abc import Mapping

from commensald.schedulers.slurm.times import duration

COMMAND = ("sacctmgr", "--noheader", "--parsable2", "show", "qos", "format=name,gracetime")


def decide_preemption(config: Mapping[str, str]) -> bool:
    """Whether this configuration preempts by quality of service."""
    return config.get("PreemptType", "") == "preempt/qos"


def grace(output: str) -> dict[str, float]:
    """Grace in seconds by name, from the output of :data:`COMMAND`. Raises TimeError."""
    rows = (line.split("|") for line in output.split("\n") if line.count("|") == 1)
    return {name: duration(written) or 0.0 for name, written in rows}
