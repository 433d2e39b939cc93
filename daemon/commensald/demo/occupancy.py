"""Who held each node when, by the definitions of the demo's summary.

Idle: up, not reserved, not allocated to a primary job, whether a pilot holds it or not. Harvested: of these, between start and reaping of a
pilot's process. In ring: of these, between the first and the last closed step of a member's stay. Allocation counts from the instant at
which the core assigned the node, so a pilot that is still leaving harvests nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from commensald.demo.intervals import Spans, difference, intersection, union
from commensald.demo.record import (
    Assigned,
    ClusterStarted,
    Ended,
    Entry,
    NodeChanged,
    Reserved,
    Started,
    StayBegan,
    StayEnded,
    clock,
)

UP = frozenset({"IDLE", "ALLOCATED", "MIXED", "UP"})


class Occupancy(msgspec.Struct, frozen=True, kw_only=True):
    """One node's time, within the demo's clock; ``in_ring`` is by training."""

    node: str
    down: Spans
    reserved: Spans
    primary: Spans
    idle: Spans
    harvested: Spans
    in_ring: Mapping[str, Spans]


class Stay(msgspec.Struct, frozen=True, kw_only=True):
    """A member in a ring, from its first closed step to its last; an open stay ends with the clock."""

    training: str
    member: str
    pilot: str
    node: str
    begin: float
    end: float


def stays(entries: Sequence[Entry]) -> list[Stay]:
    """All stays, in order of their begin."""
    _, stop = clock(entries)
    closed: list[Stay] = []
    for index, entry in enumerate(entries):
        if isinstance(entry, StayBegan):
            end = _end_of_stay(entries[index:], entry.member, stop)
            closed.append(Stay(training=entry.training, member=entry.member, pilot=entry.pilot, node=entry.node, begin=entry.at, end=end))
    return closed


def _end_of_stay(later: Sequence[Entry], member: str, stop: float) -> float:
    return next((entry.at for entry in later if isinstance(entry, StayEnded) and entry.member == member), stop)


def occupancy(entries: Sequence[Entry]) -> list[Occupancy]:
    """Every node of the cluster, in its own order."""
    names = [name for entry in entries if isinstance(entry, ClusterStarted) for name in entry.nodes]
    ends = {entry.job: entry.at for entry in entries if isinstance(entry, Ended)}
    members = stays(entries)
    return [_of_node(name, entries, ends, members) for name in names]


def _of_node(node: str, entries: Sequence[Entry], ends: Mapping[str, float], members: Sequence[Stay]) -> Occupancy:
    start, stop = clock(entries)
    whole: Spans = ((start, stop),)
    down = intersection(whole, _down(node, entries, stop))
    reserved = intersection(whole, _reserved(node, entries, stop))
    primary = intersection(whole, _held(node, entries, ends, stop, Assigned, pilots=False))
    idle = difference(whole, union((*down, *reserved, *primary)))
    harvested = intersection(idle, _held(node, entries, ends, stop, Started, pilots=True))
    trainings = sorted({stay.training for stay in members})
    in_ring = {name: intersection(harvested, _ringed(node, name, members)) for name in trainings}
    return Occupancy(node=node, down=down, reserved=reserved, primary=primary, idle=idle, harvested=harvested, in_ring=in_ring)


def _held(
    node: str,
    entries: Sequence[Entry],
    ends: Mapping[str, float],
    stop: float,
    since: type[Assigned] | type[Started],
    *,
    pilots: bool,
) -> Spans:
    held = (entry for entry in entries if isinstance(entry, since) and node in entry.nodes and (entry.pilot is not None) == pilots)
    return union((entry.at, ends.get(entry.job, stop)) for entry in held)


def _ringed(node: str, training: str, members: Sequence[Stay]) -> Spans:
    return union((stay.begin, stay.end) for stay in members if stay.node == node and stay.training == training)


def _reserved(node: str, entries: Sequence[Entry], stop: float) -> Spans:
    held = (entry for entry in entries if isinstance(entry, Reserved) and node in entry.nodes)
    return union((entry.start, stop if entry.end is None else entry.end) for entry in held)


def _down(node: str, entries: Sequence[Entry], stop: float) -> Spans:
    changes = [entry for entry in entries if isinstance(entry, NodeChanged) and entry.node == node]
    ends = [*(change.at for change in changes[1:]), stop]
    return union((change.at, end) for change, end in zip(changes, ends, strict=False) if change.state.upper() not in UP)
