"""Vnodes to hosts: every state word, several vnodes of one host, queues with nodes of their own."""

from __future__ import annotations

import pytest

from commensald.cluster import Node, NodeState
from commensald.harvest import Harvest, harvest, harvestable, schedulable, unknown_flags
from commensald.schedulers.pbs.nodes import hosts, nodes
from commensald.schedulers.pbs.records import Record, UnreadableError
from commensald.schedulers.pbs.states import NODES


def vnode(state: str, host: str = "n1", cpus: int = 4, used: int = 0, **more: str) -> Record:
    return {
        "state": state,
        "resources_available.host": host,
        "resources_available.ncpus": str(cpus),
        "resources_available.mem": "1048576kb",
        **({"resources_assigned.ncpus": str(used)} if used else {}),
        **more,
    }


def host(*vnodes: Record) -> Node:
    (found,) = nodes({f"v{number}": each for number, each in enumerate(vnodes)})
    return found


EXPECTED = {
    "free": (NodeState.IDLE, Harvest.START),
    "busy": (NodeState.IDLE, Harvest.STAY),
    "down": (NodeState.DOWN, Harvest.LEAVE),
    "initializing": (NodeState.IDLE, Harvest.STAY),
    "job-busy": (NodeState.ALLOCATED, Harvest.STAY),
    "job-exclusive": (NodeState.ALLOCATED, Harvest.STAY),
    "job-sharing": (NodeState.MIXED, Harvest.STAY),
    "maintenance": (NodeState.IDLE, Harvest.LEAVE),
    "offline": (NodeState.IDLE, Harvest.LEAVE),
    "offline_by_mom": (NodeState.IDLE, Harvest.LEAVE),
    "powered-off": (NodeState.IDLE, Harvest.STAY),
    "powering-down": (NodeState.IDLE, Harvest.LEAVE),
    "powering-on": (NodeState.IDLE, Harvest.STAY),
    "provisioning": (NodeState.ALLOCATED, Harvest.LEAVE),
    "resv-exclusive": (NodeState.IDLE, Harvest.STAY),
    "sleep": (NodeState.IDLE, Harvest.STAY),
    "stale": (NodeState.IDLE, Harvest.STAY),
    "state-unknown": (NodeState.UNKNOWN, Harvest.STAY),
    "unresolvable": (NodeState.DOWN, Harvest.LEAVE),
    "wait-provisioning": (NodeState.ALLOCATED, Harvest.LEAVE),
}


def test_every_word_has_its_meaning() -> None:
    assert EXPECTED.keys() == NODES.keys()
    assert {word: (host(vnode(word)).state, harvest(host(vnode(word)))) for word in NODES} == EXPECTED
    assert not unknown_flags([host(vnode(word)) for word in NODES])


@pytest.mark.parametrize(
    ("words", "state", "flags"),
    [
        ("offline,job-exclusive", NodeState.ALLOCATED, {"DRAIN"}),
        ("state-unknown,down", NodeState.DOWN, {"NOT_RESPONDING"}),
        ("Stale", NodeState.IDLE, {"NOT_RESPONDING"}),
        ("resv-exclusive,busy", NodeState.IDLE, {"RESERVED", "BUSY"}),
        ("free, sleep", NodeState.IDLE, {"POWERED_DOWN"}),
    ],
)
def test_words_together(words: str, state: NodeState, flags: set[str]) -> None:
    found = host(vnode(words))
    assert (found.state, found.flags) == (state, flags)


@pytest.mark.parametrize("word", ["<various>", "some-new-word"])
def test_a_word_that_nobody_knows_keeps_the_node_unused(word: str) -> None:
    found = host(vnode(word))
    assert not harvestable(found)
    assert unknown_flags([found]) == {word.upper()}


def test_a_free_node_with_a_job_on_it_is_mixed() -> None:
    assert host(vnode("free", used=1)).state is NodeState.MIXED
    assert host(vnode("free", jobs="7.srv")).state is NodeState.MIXED  # it may use no cpus at all
    assert host(vnode("free")).state is NodeState.IDLE


def test_vnodes_of_one_host_are_one_node() -> None:
    natural, first, second = vnode("free", cpus=0), vnode("job-busy", used=4), vnode("free")
    found = host(natural, first, second)
    assert (found.name, found.state, found.cpus, found.cpus_used, found.memory_mib) == ("n1", NodeState.MIXED, 8, 4, 3072)
    assert host(natural, first, first).state is NodeState.ALLOCATED
    assert host(natural, second, second).state is NodeState.IDLE
    assert host(natural, second, vnode("down")).state is NodeState.DOWN
    assert host(natural, second, vnode("offline")).flags == {"DRAIN"}
    assert hosts({"v1": first, "v2": {"state": "free"}}) == {"v1": "n1", "v2": "v2"}


def test_gpus_are_counted() -> None:
    found = host(vnode("free", **{"resources_available.ngpus": "4", "resources_assigned.ngpus": "1"}))
    assert (found.gpus, found.gpus_used) == (4, 1)


def test_a_queue_with_nodes_of_its_own_has_no_others() -> None:
    records = {"a": vnode("free", "a", queue="gpuq"), "b": vnode("free", "b")}
    assert [each.partitions for each in nodes(records, ["gpuq", "workq"])] == [{"gpuq"}, {"workq"}]
    assert host(vnode("free")).partitions == frozenset()


@pytest.mark.parametrize(("pilots", "usable"), [("gpuq", ["a"]), ("workq", ["b"]), (None, ["a", "b"])])
def test_pilots_go_only_where_their_queue_does(pilots: str | None, usable: list[str]) -> None:
    records = {"a": vnode("free", "a", queue="gpuq"), "b": vnode("free", "b")}
    found = nodes(records, ["gpuq", "workq"], pilots)
    assert [each.name for each in found if harvestable(each)] == usable
    assert all(schedulable(each) for each in found)


@pytest.mark.parametrize("wrong", [{"resources_available.ncpus": "four"}, {"resources_available.mem": "much"}])
def test_a_node_that_cannot_be_read_is_no_node(wrong: dict[str, str]) -> None:
    with pytest.raises(UnreadableError):
        host({**vnode("free"), **wrong})
    with pytest.raises(UnreadableError):
        host({"resources_available.host": "n1"})
