"""How fast a training steps, as its reports show it, and what is learnt from that."""

from __future__ import annotations

import pytest

from commensal.messages import Batches, Generation, SettledStep
from commensald.allocate.observations import Observation, Rescale
from commensald.coordinator.pace import FORGET_SECONDS, Pace, Seen
from commensald.learning import choose, learn
from commensald.trainings import BatchTable, CurveTable, TrainingSpec
from commensald.trainings import Rescale as Given

SPEC = TrainingSpec(name="t", script="s", folder="f", max_nodes=4)
ALLOWED = Batches(64, 512, 8)


def step(number: int, ring: int, nodes: int, samples: int = 64, noise: float | None = None) -> SettledStep:
    return SettledStep(
        step=number,
        generation=Generation(1, ring),
        epoch=0,
        samples=tuple(range(samples)),
        loss=1.0,
        closed_ago=0.0,
        nodes=nodes,
        batch=64,
        noise_scale=noise,
    )


def run(pace: Pace, ring: int, nodes: int, begins: float, seconds: float, steps: int = 10) -> float:
    for number in range(steps):
        pace.settled(step(number, ring, nodes), begins + number * seconds)
    return begins + (steps - 1) * seconds


def test_durations_are_told_apart_by_nodes_and_a_ring_that_begins_is_a_stall() -> None:
    pace = Pace(Seen())
    at = run(pace, ring=1, nodes=1, begins=0.0, seconds=1.0)
    run(pace, ring=2, nodes=2, begins=at + 3.6, seconds=0.6)
    seen = pace.seen()
    assert [(each.nodes, each.batch, pytest.approx(each.step_seconds)) for each in seen.steps] == [(1, 64, 1.0), (2, 64, 0.6)]
    assert [pytest.approx(each.stall_seconds) for each in seen.rescales] == [3.0]


def test_the_rest_of_an_epoch_is_no_step_of_its_batch() -> None:
    pace = Pace(Seen())
    at = run(pace, ring=1, nodes=1, begins=0.0, seconds=1.0)
    pace.settled(step(11, 1, 1, samples=3), at + 0.1)
    assert [each.batch for each in pace.seen().steps] == [64]


def test_what_was_slow_once_is_forgotten() -> None:
    pace = Pace(Seen(steps=(Observation(nodes=2, batch=64, step_seconds=9.0),)))
    at = run(pace, ring=1, nodes=1, begins=0.0, seconds=1.0)
    assert len(pace.seen().steps) == 2
    run(pace, ring=1, nodes=1, begins=at + FORGET_SECONDS + 2, seconds=1.0)
    assert [each.nodes for each in pace.seen().steps] == [1]


def test_what_the_researcher_gave_comes_first() -> None:
    seen = Seen(steps=(Observation(nodes=1, batch=64, step_seconds=0.5),), rescales=(Rescale(stall_seconds=2.0, warmup_seconds=(7.0,)),))
    assert learn(SPEC, None, seen, 0.0).curve[0] == (1, 128.0)
    assert (learn(SPEC, None, seen, 0.0).stall_seconds, learn(SPEC, None, seen, 0.0).warmup_seconds) == (2.0, 7.0)
    given = TrainingSpec(
        name="t", script="s", folder="f", curve=CurveTable(nodes=(1,), samples_per_second=(5.0,)), rescale=Given(warmup_seconds=0.0)
    )
    assert learn(given, None, seen, 0.0).curve == ((1, 5.0),)
    assert (learn(given, None, seen, 0.0).stall_seconds, learn(given, None, seen, 0.0).warmup_seconds) == (2.0, 0.0)


def times(fixed: float = 0.1, each: float = 0.001) -> tuple[Observation, ...]:
    sizes = [(nodes, batch) for nodes in (1, 2, 3) for batch in (64, 128, 256)]
    return tuple(Observation(nodes=nodes, batch=batch, step_seconds=fixed * (nodes > 1) + each * batch / nodes) for nodes, batch in sizes)


def test_a_range_of_batches_is_used_once_steps_have_been_seen() -> None:
    assert learn(SPEC, ALLOWED, Seen(), 0.0).batches == ()
    assert learn(SPEC, Batches(64, 64, 8), Seen(steps=times()), 0.0).batches == ()
    known = learn(SPEC, ALLOWED, Seen(steps=times()), 0.0)
    assert min(known.batches[1:]) > 450, "where each step costs a message, the largest makes the most samples"
    assert known.curve[3][1] > known.curve[0][1]
    limited = TrainingSpec(name="t", script="s", folder="f", max_nodes=4, batch=BatchTable(per_node=40))
    assert learn(limited, ALLOWED, Seen(steps=times()), 0.0).batches[:3] == (64, 80, 120)


def test_by_progress_a_small_noise_scale_keeps_the_batch_small() -> None:
    spec = TrainingSpec(name="t", script="s", folder="f", max_nodes=4, batch=BatchTable(by="progress"))
    small, large = (learn(spec, ALLOWED, Seen(steps=times(), noise_scale=scale), 0.0).batches for scale in (10.0, 1e6))
    assert max(small) < min(large[1:])
    assert min(large[1:]) > 450


def test_a_batch_that_is_nearly_as_good_stays() -> None:
    elastic = learn(SPEC, ALLOWED, Seen(steps=times()), 0.0).elastic
    assert elastic is not None
    assert choose(elastic, 4, (500, 500, 500, 500)) == (500, 500, 500, 500)
    assert min(choose(elastic, 4, (64, 64, 64, 64))[1:]) > 450
