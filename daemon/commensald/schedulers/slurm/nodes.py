"""Nodes: records to :class:`~commensald.cluster.Node`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from commensald.cluster import Node, NodeState
from commensald.schedulers.slurm.names import node_name
from commensald.schedulers.slurm.records import Record, count, need
from commensald.schedulers.slurm.states import node_state

_GPUS = re.compile(r"(?:^|,)gres/gpu=(\d+)")
_CONFIGURED_GPUS = re.compile(r"(?:^|,)gpu(?::[^,:()]+)?:(\d+)")
_NONE = frozenset({"", "(null)", "N/A"})


def nodes(records: Iterable[Record], pilots: str | None = None) -> tuple[Node, ...]:
    """All of them; one that is not in the partition ``pilots`` (``None``: not known) is flagged. Raises UnreadableError."""
    return tuple(_node(record, pilots) for record in records)


def _node(record: Record, pilots: str | None) -> Node:
    state, flags = node_state(need(record, "State"))
    partitions = _names(record.get("Partitions", ""))
    cpus_used = count(need(record, "CPUAlloc"))
    return Node(
        name=node_name(need(record, "NodeName")),
        state=NodeState.MIXED if state is NodeState.IDLE and cpus_used else state,  # jobs were seen on it after its state was
        flags=flags if pilots is None or pilots in partitions else flags | {"OTHER_PARTITION"},
        cpus=count(need(record, "CPUTot")),
        gpus=_gpus(record.get("CfgTRES", "")) or sum(map(int, _CONFIGURED_GPUS.findall(record.get("Gres", "")))),
        memory_mib=count(need(record, "RealMemory")),
        cpus_used=cpus_used,
        gpus_used=_gpus(record.get("AllocTRES", "")),
        features=_names(record.get("ActiveFeatures", "")),
        partitions=partitions,
        reservation=None if record.get("ReservationName", "") in _NONE else record["ReservationName"],
    )


def _gpus(tres: str) -> int:
    match = _GPUS.search(tres)
    return int(match[1]) if match else 0


def _names(text: str) -> frozenset[str]:
    return frozenset() if text in _NONE else frozenset(filter(None, text.split(",")))
