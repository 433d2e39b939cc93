"""What holds in every replay."""

from __future__ import annotations

from itertools import cycle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replay_parts import kind, played, synthetic

from commensald.decision import AllocatorName, Policy
from commensald.replay.reference import reference
from commensald.replay.simulate import Tick
from commensald.replay.workload import Kind

MODES: tuple[AllocatorName, ...] = ("exact", "equal", "equal-fair")


def quiet(what: str) -> Tick:
    return lambda share: None


@st.composite
def kinds(draw: st.DrawFn) -> Kind:
    least = draw(st.integers(1, 3))
    sizes = sorted(draw(st.sets(st.integers(1, 16), min_size=1, max_size=4)))
    slopes = draw(st.lists(st.floats(0.1, 10.0), min_size=len(sizes), max_size=len(sizes)))
    return kind(
        curve=tuple((size, size * slope) for size, slope in zip(sizes, sorted(slopes, reverse=True), strict=True)),
        samples=draw(st.floats(1e3, 1e6)),
        min_nodes=least,
        max_nodes=least + draw(st.integers(0, 12)),
        grow_stall=draw(st.floats(0.0, 60.0)),
        shrink_stall=draw(st.floats(0.0, 60.0)),
        warmup=draw(st.floats(0.0, 60.0)),
    )


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.lists(kinds(), min_size=1, max_size=3),
    st.integers(1, 6),
    st.booleans(),
    st.booleans(),
    st.sampled_from(MODES),
)
def test_node_time_is_conserved_and_work_is_paid_for(
    seed: int, queue: list[Kind], trainers: int, cold: bool, event: bool, allocator: AllocatorName
) -> None:
    trace = synthetic(seed, seconds=4000.0)
    rules = {"trainers": trainers, "charge_cold_start": cold, "finish_is_event": event, "policy": Policy(allocator=allocator)}
    outcome = played(trace, cycle(queue), **rules)
    begins = [point.at for point in outcome.points]
    seconds = [until - at for at, until in zip(begins, [*begins[1:], trace.end], strict=True)]
    assert min(seconds) >= 0.0
    assert all(0 <= point.used <= point.pool for point in outcome.points)
    gross = sum(point.rate * each for point, each in zip(outcome.points, seconds, strict=True))
    charged = outcome.points[-1].rescale_lost + outcome.points[-1].preempt_lost
    assert 0.0 <= outcome.trained <= gross * (1 + 1e-9)
    if event:
        assert outcome.trained >= (gross - charged) * (1 - 1e-9)
    dearest = max(each.shrink_stall * each.rate(nodes) for each in queue for nodes in range(each.max_nodes + 1))
    assert outcome.points[-1].preempt_lost <= outcome.preempted * dearest * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), kinds(), st.integers(1, 6), st.booleans(), st.sampled_from(MODES))
def test_nobody_trains_more_than_the_best_split_without_costs(
    seed: int, alike: Kind, trainers: int, event: bool, allocator: AllocatorName
) -> None:
    trace = synthetic(seed, seconds=4000.0)
    best = reference(trace, (alike,), trainers, lambda: 0.0, quiet).best
    outcome = played(trace, cycle((alike,)), trainers=trainers, finish_is_event=event, policy=Policy(allocator=allocator))
    assert outcome.trained <= best * (1 + 1e-9)
    free = {"grow_stall": 0.0, "shrink_stall": 0.0, "warmup": 0.0}
    without = kind(curve=alike.curve, samples=alike.samples, min_nodes=alike.min_nodes, max_nodes=alike.max_nodes, **free)
    assert played(trace, cycle((without,)), trainers=trainers).trained == pytest.approx(best, rel=1e-9)
