"""Which nodes a pilot may have: a total table over a node's base state and flags.

The words are those of Slurm's slurm.h (``NODE_STATE_*``, NODE_STATE_FLAGS), as ``scontrol show node`` prints them: BASE+FLAG+FLAG.
Other schedulers' words are brought to these in their own rooms.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from commensald.cluster import Node, NodeState


class Harvest(IntEnum):
    """What a flag leaves of a node, the worst flag winning."""

    LEAVE = 0
    """Somebody works on the node or is about to: a pilot that is there goes."""
    STAY = 1
    """No new pilot, but one that is there may go on."""
    START = 2
    """No objection."""


FLAGS: dict[str, Harvest] = {
    "BLOCKED": Harvest.STAY,  # kept free beside an exclusive topology job
    "BUSY": Harvest.STAY,  # PBS: its load is above max_load
    "CLOUD": Harvest.START,
    "COMPLETING": Harvest.STAY,  # the epilog of the last job still runs
    "DRAIN": Harvest.LEAVE,
    "DYNAMIC_FUTURE": Harvest.STAY,
    "DYNAMIC_NORM": Harvest.START,
    "EXTERNAL": Harvest.STAY,  # not ours to start on: no slurmd of this cluster
    "FAIL": Harvest.LEAVE,
    "INVALID_REG": Harvest.STAY,
    "MAINTENANCE": Harvest.LEAVE,
    "NOT_RESPONDING": Harvest.STAY,
    "OTHER_PARTITION": Harvest.STAY,  # our word: pilots go to a partition (PBS: queue) that it is not in
    "PLANNED": Harvest.START,  # idle now, held by backfill for a later start: the best there is
    "POWERED_DOWN": Harvest.STAY,
    "POWERING_DOWN": Harvest.LEAVE,
    "POWERING_UP": Harvest.STAY,
    "POWER_DOWN": Harvest.LEAVE,
    "POWER_DRAIN": Harvest.LEAVE,
    "POWER_UP": Harvest.STAY,
    "REBOOT_CANCELED": Harvest.START,
    "REBOOT_ISSUED": Harvest.LEAVE,
    "REBOOT_REQUESTED": Harvest.LEAVE,
    "RESERVED": Harvest.STAY,  # inside a reservation now; where it takes running jobs the scheduler does so itself
    "RESUME": Harvest.START,
    "UNDRAIN": Harvest.START,
}
"""Every flag we know. Another one counts as STAY."""

STATES: dict[NodeState, Harvest] = {
    NodeState.IDLE: Harvest.START,
    NodeState.ALLOCATED: Harvest.STAY,
    NodeState.MIXED: Harvest.STAY,
    NodeState.DOWN: Harvest.LEAVE,
    NodeState.ERROR: Harvest.LEAVE,
    NodeState.FUTURE: Harvest.LEAVE,
    NodeState.UNKNOWN: Harvest.STAY,
}

_NO_PRIMARY = frozenset({"DRAIN", "DYNAMIC_FUTURE", "EXTERNAL", "FAIL", "INVALID_REG", "MAINTENANCE", "NOT_RESPONDING", "POWER_DRAIN"})


def harvest(node: Node) -> Harvest:
    """How far ``node`` may be used, from its state and flags alone."""
    return min([STATES[node.state], *(FLAGS.get(flag, Harvest.STAY) for flag in node.flags)])


def harvestable(node: Node) -> bool:
    """Whether a pilot may start on ``node`` now; a node held by our own pilot is not idle and is the forecast's to judge."""
    return harvest(node) is Harvest.START


def unknown_flags(nodes: Iterable[Node]) -> frozenset[str]:
    """Flags that the table lacks; their nodes are not used, and the caller reports each flag once."""
    return frozenset().union(*(node.flags for node in nodes)) - FLAGS.keys()


def schedulable(node: Node) -> bool:
    """Whether the scheduler could place primary jobs on ``node`` once it is free."""
    return node.state in (NodeState.IDLE, NodeState.ALLOCATED, NodeState.MIXED) and not node.flags & _NO_PRIMARY
