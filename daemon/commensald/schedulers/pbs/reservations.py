"""Reservations: records to :class:`~commensald.cluster.Reservation`."""

from __future__ import annotations

from collections.abc import Mapping

from commensald.cluster import Reservation
from commensald.schedulers.pbs.names import vnodes
from commensald.schedulers.pbs.records import Record, UnreadableError, need
from commensald.schedulers.pbs.times import instant

OVER = frozenset({"RESV_FINISHED", "RESV_DELETED"})
WITHOUT_NODES = frozenset({"RESV_UNCONFIRMED", "RESV_WAIT", "RESV_NONE", "RESV_BEING_DELETED", "RESV_IN_CONFLICT"})
"""States (``pbs_rstat -F``) of one that may hold no node, and may have no start yet."""


def reservations(records: Mapping[str, Record], hosts: Mapping[str, str]) -> tuple[Reservation, ...]:
    """Those that hold nodes or will; of a standing one its next occurrence.

    Raises UnreadableError: one that cannot be read might hold any node.
    """
    found = (_reservation(name, record, hosts) for name, record in records.items() if need(record, "reserve_state") not in OVER)
    return tuple(each for each in found if each is not None)


def queues(records: Mapping[str, Record]) -> frozenset[str]:
    """The queues of reservations: their jobs run within the reservation."""
    return frozenset(record["queue"] for record in records.values() if "queue" in record)


def _reservation(name: str, record: Record, hosts: Mapping[str, str]) -> Reservation | None:
    state = need(record, "reserve_state")
    start, held = instant(record.get("reserve_start", "")), vnodes(record.get("resv_nodes", ""))
    if start is None or not held:
        if state in WITHOUT_NODES:
            return None
        raise UnreadableError("a reservation without start or nodes", f"{name} {state}")
    return Reservation(
        name=name,
        nodes=frozenset(hosts.get(each, each) for each in held),
        start=start,
        end=instant(record.get("reserve_end", "")),
        flags=frozenset({state}),
    )
