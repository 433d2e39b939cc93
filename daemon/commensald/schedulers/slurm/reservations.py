"""Reservations: records to :class:`~commensald.cluster.Reservation`."""

from __future__ import annotations

from collections.abc import Iterable

from commensald.cluster import Reservation
from commensald.node_lists import node_names
from commensald.schedulers.slurm.records import Record, UnreadableError, need
from commensald.schedulers.slurm.times import instant


def reservations(records: Iterable[Record]) -> tuple[Reservation, ...]:
    """All of them. Raises UnreadableError: a reservation that cannot be read might hold any node."""
    return tuple(_reservation(record) for record in records)


def _reservation(record: Record) -> Reservation:
    start = instant(need(record, "StartTime"))
    if start is None:
        raise UnreadableError("a reservation without a start", need(record, "ReservationName"))
    return Reservation(
        name=need(record, "ReservationName"),
        nodes=frozenset(node_names(need(record, "Nodes"))),
        start=start,
        end=instant(need(record, "EndTime")),
        flags=frozenset(filter(None, need(record, "Flags").split(","))),
    )
