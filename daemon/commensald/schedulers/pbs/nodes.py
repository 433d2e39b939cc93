"""Nodes: records of vnodes to :class:`~commensald.cluster.Node`, one for each host."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from commensald.cluster import Node, NodeState
from commensald.schedulers.pbs.names import node_name
from commensald.schedulers.pbs.records import Record, count, mebibytes, need
from commensald.schedulers.pbs.states import node_state, worst

AVAILABLE, ASSIGNED = "resources_available.", "resources_assigned."


def hosts(records: Mapping[str, Record]) -> dict[str, str]:
    """Vnode -> host."""
    return {name: record.get(f"{AVAILABLE}host", name) for name, record in records.items()}


def nodes(records: Mapping[str, Record], queues: Collection[str] = (), pilots: str | None = None) -> tuple[Node, ...]:
    """All hosts in the order of their first vnode; ``queues`` are those of the server, ``pilots`` is the one that pilots go to.

    Raises UnreadableError, WrongNameError.
    """
    of_host: dict[str, list[Record]] = {}
    for vnode, host in hosts(records).items():
        of_host.setdefault(node_name(host), []).append(records[vnode])
    tied = {each["queue"] for each in records.values() if "queue" in each}
    elsewhere = frozenset(queues) - tied if tied else frozenset[str]()
    return tuple(_node(host, vnodes, elsewhere, pilots) for host, vnodes in of_host.items())


def _node(host: str, vnodes: Collection[Record], elsewhere: frozenset[str], pilots: str | None) -> Node:
    told = [node_state(need(each, "state")) for each in vnodes]
    partitions = frozenset(each["queue"] for each in vnodes if "queue" in each) or elsewhere
    unreachable = {"OTHER_PARTITION"} if pilots is not None and partitions and pilots not in partitions else set[str]()
    flags = unreachable.union(*(words for _, words in told))
    return Node(
        name=host,
        state=_together([state for state, _ in told], [_amount(each, f"{AVAILABLE}ncpus") for each in vnodes], any(map(_occupied, vnodes))),
        flags=frozenset(flags),
        cpus=_sum(vnodes, f"{AVAILABLE}ncpus"),
        gpus=_sum(vnodes, f"{AVAILABLE}ngpus"),
        memory_mib=sum(mebibytes(each.get(f"{AVAILABLE}mem", "0")) for each in vnodes),
        cpus_used=_sum(vnodes, f"{ASSIGNED}ncpus"),
        gpus_used=_sum(vnodes, f"{ASSIGNED}ngpus"),
        partitions=partitions,
        reservation=next((each["resv"] for each in vnodes if each.get("resv")), None),
    )


def _together(states: list[NodeState], cpus: list[int], occupied: bool) -> NodeState:
    """One state of several vnodes: the worst if any is lost; otherwise a vnode without cpus (a large host's natural one) has no say."""
    if (lost := worst(states)) in (NodeState.DOWN, NodeState.UNKNOWN):
        return lost
    counted = {state for state, each in zip(states, cpus, strict=True) if each} or set(states)
    if len(counted) > 1 or (counted == {NodeState.IDLE} and occupied):
        return NodeState.MIXED  # a free vnode with a job on it has cpus left
    return counted.pop()


def _occupied(record: Record) -> bool:
    return bool(record.get("jobs")) or _amount(record, f"{ASSIGNED}ncpus") > 0


def _sum(vnodes: Collection[Record], key: str) -> int:
    return sum(_amount(each, key) for each in vnodes)


def _amount(record: Record, key: str) -> int:
    return count(record.get(key, "0"))
