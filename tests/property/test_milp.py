"""The dynamic programme against HiGHS: over counts, and on the published programme with either bound.

Each seed is an instance of 1 to 12 trainings and 1 to 60 nodes, with curves of any shape; COMMENSAL_EXAMPLES=200 is the long run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from random import Random

import pytest

from commensald.allocate import exact, grouped, knapsack, milp
from commensald.allocate.placing import own, place
from commensald.decision import Cap, Demand

pytest.importorskip("highspy")
SEEDS = range(int(os.environ.get("COMMENSAL_EXAMPLES", "8")))
LOOK_AHEAD, LIMIT = 120.0, 150.0


def instance(seed: int) -> tuple[list[Demand], frozenset[str]]:
    """Trainings, some of which hold nodes, some with floors where the seed is odd, and the nodes there are."""
    chance = Random(seed)
    nodes, trainings = chance.randint(1, 60), chance.randint(1, 12)
    names = [f"n{index:02}" for index in range(nodes)]
    holders = [chance.randint(0, trainings) for _ in names]
    held = [frozenset(name for name, holder in zip(names, holders, strict=True) if holder == index) for index in range(trainings)]
    return [training(chance, index, held[index], floors=seed % 2 == 1) for index in range(trainings)], frozenset(names)


def training(chance: Random, index: int, nodes: frozenset[str], *, floors: bool) -> Demand:
    least = chance.choice([1, 1, 1, 2, 4])
    return Demand(
        training=f"t{index:02}",
        owner="me",
        min_nodes=least,
        max_nodes=least + chance.randint(0, 40),
        floor_nodes=chance.choice([0, 0, 2]) if floors else 0,
        weight=chance.uniform(0.2, 3.0),
        curve=curve(chance),
        stall_seconds=chance.uniform(0.0, 40.0),
        shrink_stall_seconds=chance.choice([None, chance.uniform(0.0, 30.0)]),
        warmup_seconds=chance.choice([0.0, chance.uniform(0.0, 30.0)]),
        node_seconds=chance.choice([(), (), (600.0, 90.0, 30.0)]),
        nodes=nodes,
    )


def curve(chance: Random) -> tuple[tuple[int, float], ...]:
    """Some rise, faster or slower than linear; some fall in places."""
    rate, points, lowest = 0.0, [], chance.choice([0.0, 0.0, -20.0])
    for nodes in sorted(chance.sample(range(1, 65), chance.randint(1, 7))):
        rate = max(rate + chance.uniform(lowest, 100.0), 0.0)
        points.append((nodes, rate))
    return tuple(points)


def worth(demands: Sequence[Demand], held: Sequence[int], sizes: Sequence[int]) -> float:
    values = (exact.value(each, now, size, LOOK_AHEAD)[size] for each, now, size in zip(demands, held, sizes, strict=True))
    return float(sum(values))


def allowed(demands: Sequence[Demand], nodes: dict[str, frozenset[str]], available: frozenset[str]) -> bool:
    """Everybody within their limits, each node once, nobody on other nodes than before."""
    sizes = [len(nodes[each.training]) for each in demands]
    given = frozenset().union(*nodes.values())
    pairs = [(each.nodes, nodes[each.training]) for each in demands]
    return (
        all(size == 0 or each.min_nodes <= size <= each.max_nodes for each, size in zip(demands, sizes, strict=True))
        and sum(sizes) == len(given)
        and given <= available
        and all(before <= after or after <= before for before, after in pairs)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_exact_equals_the_right_programme_and_the_published_one_is_no_better(seed: int) -> None:
    demands, available = instance(seed)
    held = [len(each.nodes) for each in demands]
    sizes = exact.counts(demands, held, len(available), LOOK_AHEAD)
    best = pytest.approx(worth(demands, held, sizes), rel=1e-9, abs=1e-9)
    chosen = knapsack.solve(demands, held, len(available), LOOK_AHEAD, limit_seconds=LIMIT).sizes
    assert chosen is not None
    assert worth(demands, held, chosen) == best
    right = milp.plan(demands, available, LOOK_AHEAD, limit_seconds=LIMIT)
    assert right.optimal
    assert worth(demands, held, [len(right.nodes[each.training]) for each in demands]) == best
    assert allowed(demands, right.nodes, available)
    assert allowed(demands, place(demands, sizes, available, {}), available)
    if not any(each.floor_nodes for each in demands):  # where its bound forbids a floor, the published one drops all of them
        published = milp.plan(demands, available, LOOK_AHEAD, big_m="published", limit_seconds=LIMIT)
        found = worth(demands, held, [len(published.nodes[each.training]) for each in demands])
        assert allowed(demands, published.nodes, available)
        assert found <= worth(demands, held, sizes) * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_over_counts_of_alike_nodes_the_optimum_within_caps_is_the_same(seed: int) -> None:
    demands, available = instance(seed)
    chance, names = Random(seed), sorted(available)
    nodes = [frozenset(chance.sample(names, chance.randint(1, len(names)))) for _ in range(chance.randint(0, 3))]
    caps = [Cap(most=chance.randint(0, len(names)), nodes=each) for each in nodes]
    plans = [
        grouped.plan(demands, available, LOOK_AHEAD, {}, caps=caps, limit_seconds=LIMIT),
        milp.plan(demands, available, LOOK_AHEAD, caps=caps, limit_seconds=LIMIT),
    ]
    held = [len(each.nodes) for each in demands]
    counted, mapped = (worth(demands, held, [len(plan.nodes[each.training]) for each in demands]) for plan in plans)
    assert counted == pytest.approx(mapped, rel=1e-9, abs=1e-9)
    for plan in plans:
        assert plan.optimal
        assert allowed(demands, plan.nodes, available)
        assert all(len(cap.nodes & frozenset().union(*plan.nodes.values())) <= cap.most for cap in caps if cap.nodes is not None)


def test_the_published_bound_forbids_to_drop_more_than_half_of_the_pool() -> None:
    """Eight nodes: M is 9, so that with Y changes Y <= 4 (research/papers.md 1.3)."""
    pool = frozenset(f"n{index}" for index in range(8))
    pair = [
        Demand(training="slow", owner="me", max_nodes=8, curve=((8, 8.0),), nodes=pool),
        Demand(training="fast", owner="me", max_nodes=8, curve=((8, 800.0),)),
    ]
    assert {each: len(nodes) for each, nodes in milp.plan(pair, pool, 120.0, big_m="published").nodes.items()} == {"slow": 4, "fast": 4}
    assert {each: len(nodes) for each, nodes in milp.plan(pair, pool, 120.0).nodes.items()} == {"slow": 0, "fast": 8}


def test_as_published_warm_up_is_free_and_so_is_a_start() -> None:
    """On one node more for 10 s: what 20 s of stall take at the present rate, or nothing from rest."""
    pool = frozenset({"n0", "n1"})
    cold = Demand(training="t", owner="me", max_nodes=2, curve=((2, 20.0),), stall_seconds=20.0, warmup_seconds=50.0)
    assert len(milp.plan([cold], pool, 10.0, charge_warmup=False).nodes["t"]) == 2
    assert milp.plan([cold], pool, 10.0).nodes["t"] == frozenset()
    at_work = Demand(training="t", owner="me", max_nodes=2, curve=((2, 20.0),), stall_seconds=20.0, nodes=frozenset({"n0"}))
    assert milp.plan([at_work], pool, 10.0, charge_warmup=False).nodes["t"] == {"n0"}


def test_the_present_map_is_kept_on_a_tie() -> None:
    pool = frozenset(f"n{index}" for index in range(6))
    twins = [
        Demand(training=name, owner="me", max_nodes=6, curve=((6, 6.0),), nodes=frozenset(nodes))
        for name, nodes in (("a", ("n1", "n4")), ("b", ("n0", "n2", "n3", "n5")))
    ]
    assert milp.plan(twins, pool, 120.0).nodes == own(twins, pool)
