"""Algorithm 1 against every mix there is, its bounds against what they bound, and the ring's pace against the members' own shares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commensal.batch import shares
from commensald.allocate.provision.exhaustive import every
from commensald.allocate.provision.loss import Loss, Progress
from commensald.allocate.provision.pace import Goal, Kind
from commensald.allocate.provision.ring import Ring, SynchronousRing
from commensald.allocate.provision.spotdnn import ParameterServer, Server, algorithm_1, fewest, price, windows
from commensald.allocate.provision.takeover import takeover

SERVER = Server(parameters=10.0, request=100.0, bandwidth=500.0, pcie=10000.0, a1=0.5, b1=-0.5)


@st.composite
def kinds(draw: st.DrawFn) -> tuple[Kind, ...]:
    return tuple(
        Kind(
            name=f"k{index}",
            quota=draw(st.integers(0, 4)),
            charge=draw(st.floats(0.1, 5.0)),
            batch=float(2 ** draw(st.integers(5, 10))),
            seconds=draw(st.floats(0.5, 5.0)),
            gpus=draw(st.sampled_from([1, 2, 8])),
        )
        for index in range(draw(st.integers(1, 4)))
    )


losses = st.builds(
    Loss,
    g1=st.floats(0.0, 500.0),
    g2=st.floats(-0.3, 0.0),
    g3=st.floats(700.0, 2000.0),  # so that g2 b^2 + g3 b grows with b, as (16) takes for granted
    g4=st.floats(0.01, 2.0),
    g5=st.floats(0.0, 0.5),
    form=st.sampled_from(["convergence", "sqrt"]),
)
goals = st.builds(Goal, loss=st.floats(0.6, 2.0), deadline_seconds=st.floats(100.0, 20000.0))


@settings(max_examples=150, deadline=None)
@given(kinds(), losses, goals)
def test_it_is_never_better_than_the_best_mix_and_finds_one_if_a_window_is_one(have: tuple[Kind, ...], loss: Loss, goal: Goal) -> None:
    server = ParameterServer(have, SERVER)
    quotas = [kind.quota for kind in have]
    mixes = every(quotas, 1, min(sum(quotas), server.most or 0))
    assert mixes is not None
    looked, best = algorithm_1(server, loss, goal), price(server, loss, goal, mixes)
    chosen, optimum = looked.best(goal), best.best(goal)
    assert {tuple(row) for row in looked.mixes} <= {tuple(row) for row in mixes}
    if optimum is None:
        assert chosen is None
    elif chosen is not None:
        assert looked.cost[chosen] >= best.cost[optimum] - 1e-12
        assert looked.seconds[chosen] <= (goal.deadline_seconds or 0)
    if len(have) == 1:
        assert (chosen is None) == (optimum is None)


@settings(max_examples=150, deadline=None)
@given(kinds(), st.integers(0, 6), st.integers(0, 12), st.integers(0, 3))
def test_windows_are_the_slices_of_the_sorted_list(have: tuple[Kind, ...], least: int, most: int, held: int) -> None:
    """Word for word: N = E + I[idx .. idx + n - 1]."""
    existing = np.array([held, *[0] * (len(have) - 1)])
    listed = [index for index in sorted(range(len(have)), key=lambda index: -have[index].seconds) for _ in range(have[index].quota)]
    slices = [listed[idx : idx + n] for n in range(len(listed) + 1) if least <= n + held <= most for idx in range(len(listed) - n + 1)]
    found = [tuple(row) for row in windows(ParameterServer(have, SERVER), least, most, existing)]
    expected = {tuple(existing + np.bincount(each, minlength=len(have)).astype(int)) for each in slices}
    if held <= most:
        assert set(found) == expected
        assert len(found) == len(set(found))


@settings(max_examples=150, deadline=None)
@given(kinds(), losses, goals)
def test_16_excludes_no_mix_that_is_in_time(have: tuple[Kind, ...], loss: Loss, goal: Goal) -> None:
    server = ParameterServer(have, SERVER)
    quotas = [kind.quota for kind in have]
    mixes = every(quotas, 1, sum(quotas))
    assert mixes is not None
    found = price(server, loss, goal, mixes)
    assert not (found.meets(goal) & (found.pace.members < fewest(server, loss, goal))).any()


@settings(max_examples=150, deadline=None)
@given(kinds(), st.integers(1, 40), st.floats(0.0, 2.0), st.data())
def test_a_ring_steps_when_its_members_shares_are_done(have: tuple[Kind, ...], shards: int, alpha: float, data: st.DataObject) -> None:
    counts = [data.draw(st.integers(0, kind.quota)) for kind in have]
    if sum(counts) == 0:
        return
    ring = SynchronousRing(have, Ring(batch=shards * 32, micro_batch=32, alpha=alpha))
    seconds = [float(each) for each, count in zip(ring.alone_seconds, counts, strict=True) for _ in range(count)]
    done = max(len(own) * each for own, each in zip(shares(shards, [1 / each for each in seconds]), seconds, strict=True))
    expected = done + (alpha if len(seconds) > 1 else 0.0)
    assert ring.pace(np.array([counts])).step_seconds[0] == pytest.approx(expected, rel=1e-6)


@settings(max_examples=100, deadline=None)
@given(kinds(), losses, goals, st.floats(0.1, 3.0), st.data())
def test_a_takeover_keeps_what_is_held_and_asks_for_what_there_is(
    have: tuple[Kind, ...], loss: Loss, goal: Goal, above: float, data: st.DataObject
) -> None:
    held = {kind.name: data.draw(st.integers(0, 2)) for kind in have}
    available = {kind.name: kind.quota for kind in have}
    found = takeover(ParameterServer(have, SERVER), loss, goal, held, available, Progress(step=0.0, loss=goal.loss + above))
    if sum(held.values()) > 0:
        assert found is not None
    if found is not None:
        assert all(0 < count <= available[name] for name, count in found.ask.items())
        assert found.in_time == (found.seconds <= (goal.deadline_seconds or 0))
