"""Elastic batches against every possible allocation, and the autoscaler against its own rules, whatever happens."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commensald.allocate.autoscaler import Decisions, Rules, State, step
from commensald.allocate.batch import choose, counts, scaled, smallest
from commensald.allocate.elastic import ElasticBatch
from commensald.allocate.exact import value
from commensald.allocate.throughput import Throughput
from commensald.decision import Demand

SECONDS = st.floats(1e-4, 1.0)
TIMES = st.builds(
    Throughput,
    alpha_c=SECONDS,
    beta_c=SECONDS,
    alpha_n=SECONDS,
    beta_n=SECONDS,
    gamma=st.floats(1.0, 10.0),
    micro_batch=st.none() | st.integers(1, 16),
)


@st.composite
def demand(draw: st.DrawFn, index: int) -> Demand:
    least, nodes = draw(st.integers(1, 40)), draw(st.integers(1, 3))
    elastic = ElasticBatch(
        least=least,
        most=least + draw(st.integers(0, 200)),
        times=draw(TIMES),
        per_device=draw(st.none() | st.integers(8, 64)),
        noise_scale=draw(st.none() | st.floats(0.0, 1e4)),
    )
    return Demand(
        training=f"t{index}",
        owner="me",
        min_nodes=nodes,
        max_nodes=nodes + draw(st.integers(0, 4)),
        weight=draw(st.floats(0.1, 5.0)),
        elastic=elastic if draw(st.booleans()) else None,
        curve=((1, draw(SECONDS)), (4, draw(SECONDS))),
        stall_seconds=draw(st.floats(0.0, 60.0)),
    )


DEMANDS = st.integers(1, 3).flatmap(lambda count: st.tuples(*(demand(index) for index in range(count))))


@settings(max_examples=100, deadline=None)
@given(DEMANDS, st.integers(0, 8), st.lists(st.integers(0, 3), min_size=3, max_size=3))
def test_it_is_the_best_with_everyone_at_work_where_all_fit(wanted: tuple[Demand, ...], nodes: int, holding: list[int]) -> None:
    held = holding[: len(wanted)]
    found = counts(wanted, held, nodes, 120.0)
    least = [smallest(each) for each in wanted]
    if None in least or sum(size or 0 for size in least) > nodes:
        return  # then not everyone is: below
    worth = [value(scaled(each), now, nodes, 120.0) for each, now in zip(wanted, held, strict=True)]
    ranges = [range(few or 0, min(each.max_nodes, nodes) + 1) for few, each in zip(least, wanted, strict=True)]
    best = max(sum(float(row[n]) for row, n in zip(worth, sizes, strict=True)) for sizes in product(*ranges) if sum(sizes) <= nodes)
    assert sum(found) <= nodes
    assert all(size in sizes for size, sizes in zip(found, ranges, strict=True))
    assert sum(float(row[n]) for row, n in zip(worth, found, strict=True)) == pytest.approx(best, rel=1e-6, abs=1e-6)


@settings(max_examples=100, deadline=None)
@given(DEMANDS, st.integers(0, 8))
def test_sizes_and_batches_are_in_range_even_where_not_all_fit(wanted: tuple[Demand, ...], nodes: int) -> None:
    found = counts(wanted, [0] * len(wanted), nodes, 120.0)
    assert sum(found) <= nodes
    for each, size in zip(wanted, found, strict=True):
        assert size == 0 or (smallest(each) or np.inf) <= size <= each.max_nodes
        if each.elastic is not None and size:
            chosen = choose(each, size)
            assert chosen is not None
            assert each.elastic.least <= chosen <= min(each.elastic.most, size * (each.elastic.per_device or each.elastic.most))


ACTS = st.lists(st.tuples(st.integers(1, 80), st.sampled_from("abcdef"), st.booleans()), min_size=1, max_size=30)


@settings(max_examples=100, deadline=None)
@given(ACTS, st.booleans(), st.data())
def test_the_autoscaler_keeps_its_rules(acts: list[tuple[int, str, bool]], drop: bool, data: st.DataObject) -> None:
    times = Throughput(alpha_c=0.1, beta_c=0.01, alpha_n=0.05)
    demands = {
        name: Demand(
            training=name,
            owner="me",
            max_nodes=5,
            elastic=ElasticBatch(least=8 * data.draw(st.integers(1, 5)), most=64, times=times, per_device=8),
        )
        for name in "abcdef"
    }
    state, now, alive, queue = State(), 0.0, set[str](), list[str]()
    for seconds, name, ends in acts:
        now += seconds
        arrived = [] if ends or name in alive else [name]
        gone = {name} & alive if ends else set()
        before, due = state, state.due is None or now >= state.due
        state, decided = step(now, state, arrived, gone, demands=demands, nodes=7, rules=Rules(interval_seconds=100.0, drop=drop))
        alive = (alive | set(arrived)) - gone - set(decided.rejected)
        queue = [each for each in (*queue, *arrived) if each not in gone]
        assert sorted((*state.running, *state.waiting)) == sorted(alive)
        assert sum(share.nodes for share in state.running.values()) <= 7
        for each, share in state.running.items():
            assert (smallest(demands[each]) or 9) <= share.nodes <= 5
            assert share.batch == 8 * share.nodes
        if not due:
            assert dict(state.running) == {each: share for each, share in before.running.items() if each not in gone}
            assert decided == Decisions()
        else:
            assert state.due == now + 100.0
            assert [each for each in queue if each in decided.admitted] == list(decided.admitted), "first come, first tried"
            queue = list(state.waiting)
