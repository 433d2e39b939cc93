"""Which nodes a pilot may have, flag by flag."""

from __future__ import annotations

import pytest

from commensald.cluster import Node, NodeState
from commensald.harvest import FLAGS, STATES, Harvest, harvest, harvestable, schedulable, unknown_flags

SLURM_FLAGS = {
    "EXTERNAL",
    "RESERVED",
    "UNDRAIN",
    "CLOUD",
    "RESUME",
    "DRAIN",
    "COMPLETING",
    "NOT_RESPONDING",
    "POWERED_DOWN",
    "FAIL",
    "POWERING_UP",
    "MAINTENANCE",
    "REBOOT_REQUESTED",
    "REBOOT_CANCELED",
    "POWERING_DOWN",
    "DYNAMIC_FUTURE",
    "REBOOT_ISSUED",
    "PLANNED",
    "INVALID_REG",
    "POWER_DOWN",
    "POWER_UP",
    "POWER_DRAIN",
    "DYNAMIC_NORM",
    "BLOCKED",
}
"""slurm.h, as collected in research/peers.md B0."""


def node(state: NodeState = NodeState.IDLE, *flags: str) -> Node:
    return Node(name="n1", state=state, flags=frozenset(flags))


def test_every_flag_and_every_state_has_a_row() -> None:
    assert FLAGS.keys() == SLURM_FLAGS | {"BUSY", "OTHER_PARTITION"}  # what other rooms add
    assert set(NodeState) == STATES.keys()


@pytest.mark.parametrize("flags", [(), ("PLANNED",), ("CLOUD",), ("PLANNED", "DYNAMIC_NORM")])
def test_idle_and_planned_nodes_are_harvestable(flags: tuple[str, ...]) -> None:
    assert harvestable(node(NodeState.IDLE, *flags))


@pytest.mark.parametrize("flag", ["DRAIN", "NOT_RESPONDING", "COMPLETING", "POWERED_DOWN", "RESERVED", "MAINTENANCE", "BLOCKED"])
def test_one_bad_flag_spoils_a_planned_node(flag: str) -> None:
    assert not harvestable(node(NodeState.IDLE, "PLANNED", flag))


def test_an_unknown_flag_makes_a_node_unusable_and_is_named() -> None:
    strange = node(NodeState.IDLE, "QUANTUM", "PLANNED")
    assert not harvestable(strange)
    assert unknown_flags([strange, node()]) == {"QUANTUM"}


def test_a_pilot_stays_on_an_allocated_node_and_leaves_a_draining_one() -> None:
    assert harvest(node(NodeState.ALLOCATED)) is Harvest.STAY
    assert harvest(node(NodeState.ALLOCATED, "DRAIN")) is Harvest.LEAVE
    assert harvest(node(NodeState.DOWN)) is Harvest.LEAVE


def test_primary_jobs_may_be_planned_on_sleeping_but_not_on_draining_nodes() -> None:
    assert schedulable(node(NodeState.IDLE, "POWERED_DOWN"))
    assert not schedulable(node(NodeState.IDLE, "DRAIN"))
    assert not schedulable(node(NodeState.DOWN))
