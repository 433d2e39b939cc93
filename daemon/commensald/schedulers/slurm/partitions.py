"""Partitions: what a pilot may ask for and how it is preempted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from commensald.node_lists import node_names
from commensald.schedulers.slurm.records import Record, count, need
from commensald.schedulers.slurm.times import duration


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """One partition (slurm.conf(5), PARTITION CONFIGURATION); ``most_seconds`` is its MaxTime, ``preempt_modes`` its PreemptMode."""

    name: str
    default: bool
    up: bool
    tier: int
    grace_seconds: float
    most_seconds: float | None
    preempt_modes: frozenset[str]
    nodes: tuple[str, ...]


def partitions(records: Iterable[Record]) -> dict[str, Partition]:
    """All of them by name. Raises UnreadableError."""
    return {each.name: each for each in map(_partition, records)}


def _partition(record: Record) -> Partition:
    return Partition(
        name=need(record, "PartitionName"),
        default=need(record, "Default") == "YES",
        up=need(record, "State") == "UP",
        tier=count(need(record, "PriorityTier")),
        grace_seconds=float(count(need(record, "GraceTime"))),
        most_seconds=duration(need(record, "MaxTime")),
        preempt_modes=frozenset(need(record, "PreemptMode").upper().split(",")),
        nodes=node_names(need(record, "Nodes")),
    )


def of_pilots(known: Mapping[str, Partition], name: str | None) -> Partition | None:
    """The partition that pilots go to: the one of that ``name``, without one the cluster's default."""
    return known.get(name) if name is not None else next((each for each in known.values() if each.default), None)
