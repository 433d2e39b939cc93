"""An administrator's caps, alone, in the programmes, and in decide()."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import pytest

from commensald.allocate import caps, grouped, knapsack, milp
from commensald.cluster import Facts, Node, NodeState, Snapshot
from commensald.config import load
from commensald.decide import decide
from commensald.decision import Cap, Demand, Pilot, Policy, Request
from commensald.forecast import Forecast
from commensald.forecast.windows import Window
from commensald.service import policy

pytest.importorskip("highspy")
NOW = 1_000_000.0
PLANS = (milp.plan, partial(grouped.plan, expected_seconds={}))
RACK = frozenset({"r1", "r2", "r3"})
ALL = RACK | {"s1", "s2", "s3"}


def training(name: str, *nodes: str, owner: str = "me", least: int = 1, account: str | None = None, floor: int = 0) -> Demand:
    return Demand(
        training=name,
        owner=owner,
        account=account,
        min_nodes=least,
        max_nodes=6,
        floor_nodes=floor,
        curve=((6, 60.0),),
        nodes=frozenset(nodes),
    )


def look(*nodes: Node) -> Snapshot:
    return Snapshot(taken=NOW, nodes=nodes, jobs=(), reservations=(), facts=Facts(product="hand", version="1"))


@pytest.mark.parametrize("plan", PLANS)
def test_programmes_keep_caps_on_nodes_on_owners_and_on_accounts(plan: Callable[..., milp.Plan]) -> None:
    three = [training("a", "r1"), training("b", owner="you", account="x"), training("c", account="x")]
    limits = (Cap(most=2, nodes=RACK), Cap(most=2, owner="me"), Cap(most=3, account="x"))
    found = plan(three, ALL, 120.0, caps=limits)
    given = found.nodes
    assert found.optimal
    assert sum(len(each) for each in given.values()) == 5
    assert "r1" in given["a"]
    assert len(RACK & frozenset().union(*given.values())) == 2
    assert len(given["a"]) + len(given["c"]) == 2
    assert len(given["b"]) + len(given["c"]) == 3


def test_a_configuration_names_its_caps(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(
        "[allocate]\nallocator = 'milp'\ncaps.rack = {most = 2, nodes = 'r[1-3]'}\n[allocate.caps.me]\nmost = 1\nowner = 'me'\n"
    )
    assert policy(load(path, {}).config).caps == (Cap(most=2, nodes=RACK), Cap(most=1, owner="me"))


def test_counts_keep_the_caps_that_hold_on_any_node() -> None:
    pair = [training("a"), training("b", owner="you")]
    limits = [Cap(most=1, owner="me"), Cap(most=4, owner="you"), Cap(most=0, nodes=RACK), Cap(most=1, owner="nobody")]
    assert knapsack.counts(pair, [0, 0], 6, 120.0, caps=limits) == (1, 4)


@pytest.mark.parametrize("plan", PLANS)
def test_a_floor_gives_way_to_a_cap(plan: Callable[..., milp.Plan]) -> None:
    assert len(plan([training("a", floor=3)], ALL, 120.0, caps=[Cap(most=1)]).nodes["a"]) == 1
    assert knapsack.counts([training("a", floor=3)], [0], 6, 120.0, caps=[Cap(most=1)]) == (1,)


@pytest.mark.parametrize("plan", PLANS)
def test_what_is_held_is_kept_when_no_optimum_is_proved_but_within_all_limits(plan: Callable[..., milp.Plan]) -> None:
    pair = [training("a", "r1", "r2"), training("b", "r3", "s1", "s2", least=3)]
    found = plan(pair, ALL, 120.0, limit_seconds=0.0)
    assert not found.optimal
    assert found.nodes == {"a": {"r1", "r2"}, "b": {"r3", "s1", "s2"}}
    assert plan(pair, ALL, 120.0, limit_seconds=0.0, caps=[Cap(most=2, nodes=RACK)]).nodes == {"a": {"r1", "r2"}, "b": frozenset()}
    assert knapsack.counts(pair, [2, 3], 6, 120.0, limit_seconds=0.0) == (2, 3)


def test_what_one_owner_holds_is_not_left_to_the_next() -> None:
    pair = [training("a"), training("b", owner="you")]
    held = {"a": frozenset({"r1", "s1"}), "b": frozenset[str]()}
    left = caps.left((Cap(most=2, nodes=RACK), Cap(most=1, owner="me"), Cap(most=3, owner="you")), pair, held)
    assert [each.most for each in left] == [1, 0, 3]


def test_pilots_are_asked_for_only_where_a_cap_leaves_room() -> None:
    wanted = [Request(owner="me", node=name, time_limit=None, reason="") for name in ("r2", "r3", "s1", None)]
    limits = [Cap(most=2, nodes=RACK), Cap(most=0, nodes=RACK, owner="you"), Cap(most=1, nodes=frozenset({"r1", "s1"}))]
    admitted = caps.admitted(limits, [training("a")], ["r1"], wanted)
    assert [each.node for each in admitted] == ["r2", None]


def test_pilots_that_nobody_uses_go_until_the_caps_are_kept() -> None:
    limits = (Cap(most=1, nodes=RACK), Cap(most=0, nodes=RACK, owner="you"))
    spare = [("p-s1", "s1"), ("p-r3", "r3"), ("p-r2", "r2")]
    assert caps.surplus(limits, [training("a", "r1")], ["r1", "r2", "r3", "s1"], spare) == ["p-r3", "p-r2"]
    assert caps.surplus(limits, [training("a")], ["r2", "r3", "s1"], spare) == ["p-r3"]
    assert caps.surplus((Cap(most=2),), [training("a", "r1")], ["r1", "r2", "r3", "s1"], spare) == ["p-s1", "p-r3"]


@pytest.mark.parametrize("over", ["nodes", "counts"])
def test_decide_keeps_a_cap_among_running_pilots_and_in_what_it_asks_for(over: Literal["nodes", "counts"]) -> None:
    cluster = look(*(Node(name=name, state=NodeState.ALLOCATED if name in ("r1", "r2") else NodeState.IDLE) for name in sorted(ALL)))
    windows = tuple(Window(node=name, opens=NOW, closes=None, reason="", held=name in ("r1", "r2")) for name in sorted(ALL))
    pilots = [Pilot(uuid=f"p-{name}", owner="me", node=name, running=True) for name in ("r1", "r2")]
    policy = Policy(allocator="milp", milp_over=over, caps=(Cap(most=1, nodes=RACK),))
    decision = decide(cluster, Forecast(windows=windows, made=NOW), [training("a", "r2")], pilots, NOW, policy)
    assert decision.nodes == {"a": {"r2"}}
    assert [each.node for each in decision.submit] == ["s1", "s2", "s3"]
    assert decision.cancel == ("p-r1",)
    assert decision.notes == ()


def test_decide_says_when_no_optimum_was_proved() -> None:
    cluster = look(*(Node(name=name, state=NodeState.ALLOCATED) for name in sorted(ALL)))
    pilots, policy = [Pilot(uuid=name, owner="me", node=name, running=True) for name in ALL], Policy(allocator="milp", milp_seconds=0.0)
    pair = [training("a", "r1", "r2"), training("b", "r3", "s1", "s2", least=3)]
    decision = decide(cluster, Forecast(windows=(), made=NOW), pair, pilots, NOW, policy)
    assert decision.nodes == {"a": {"r1", "r2"}, "b": {"r3", "s1", "s2"}}
    assert decision.notes == ("milp: no optimum within 0 s (Time limit reached): nodes stay as they are",)
