"""Goals of running trainings: when they are over, and what reaching them takes."""

from __future__ import annotations

import pytest

from commensald.coordinator.losses import MOST_POINTS, RECENT_STEPS, Losses, LossPoint
from commensald.coordinator.pace import Seen
from commensald.demands import demand
from commensald.goals import ended, outlook
from commensald.learning import Learnt
from commensald.ledger import TrainingRecord, TrainingState
from commensald.trainings import Goal, TrainingSpec

CURVE = tuple((nodes, 1000.0 * nodes**0.9) for nodes in range(1, 9))


def course(steps: int, floor: float = 0.1) -> tuple[LossPoint, ...]:
    """Loss 2 / (step / 50 + 1) + floor, in steps of 250 samples: a quarter of a second each on one node."""
    return tuple(LossPoint(float(step), 2 / (step / 50 + 1) + floor, 250.0) for step in range(5, steps, 10))


def test_a_loss_is_reached_by_the_mean_of_the_last_steps() -> None:
    losses = Losses()
    for step in range(RECENT_STEPS):
        assert losses.recent is None
        losses.add(LossPoint(step, 0.0 if step % 2 else 1.0, 32))
    assert losses.recent == pytest.approx(0.5)
    assert ended(Goal(loss=0.5), losses.recent, 0.0, 0.0) == "goal reached: loss 0.5"
    assert ended(Goal(loss=0.4), losses.recent, 0.0, 0.0) is None


def test_a_deadline_and_a_budget_end_a_training_too() -> None:
    assert ended(Goal(deadline=10.0), None, 0.0, 9.9) is None
    assert ended(Goal(deadline=10.0), None, 0.0, 10.0) == "its deadline has passed"
    assert "missed: loss 0.7 instead of 0.5" in (ended(Goal(loss=0.5, deadline=10.0), 0.7, 0.0, 10.0) or "")
    assert ended(Goal(budget=2.0), None, 1.99, 0.0) is None
    assert "2 node-hours" in (ended(Goal(budget=2.0), None, 2.0, 0.0) or "")


def test_a_long_course_is_kept_in_few_points() -> None:
    losses = Losses()
    for step in range(10_000):
        losses.add(LossPoint(step, float(step), 32))
    assert MOST_POINTS // 2 <= len(losses.points) < MOST_POINTS
    assert all(point.loss == point.step for point in losses.points)
    again = Losses(losses.points)
    again.add(LossPoint(10_001, 0.0, 32))
    assert len(again.points) == len(losses.points), "points stay as wide as they were"
    losses.back(5000)
    assert losses.points[-1].step <= 5000
    assert losses.recent is None


def test_the_nearer_the_deadline_the_more_nodes() -> None:
    """Loss 0.2 takes step 950: 450 more of a quarter of a node-second."""
    seen = Seen(losses=course(500))
    needed = [outlook(Goal(loss=0.2, deadline=seconds), seen, CURVE, 8, 0.0) for seconds in (1000.0, 62.0, 25.0, 5.0)]
    counts = [each.nodes for each in needed if each is not None and each.nodes is not None]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (1, 8)
    assert [each.in_time for each in needed if each is not None] == [True, True, True, False]
    assert needed[1] is not None
    assert needed[1].seconds == pytest.approx(455 * 0.25 / 2**0.9, rel=0.01)


def test_a_budget_allows_only_so_many_nodes() -> None:
    seen = Seen(losses=course(500), node_seconds=3600.0)
    rich, poor = (outlook(Goal(loss=0.2, budget=1 + hours), seen, CURVE, 8, 0.0) for hours in (1.0, 0.034))
    assert rich is not None
    assert poor is not None
    assert rich.nodes == 8
    assert poor.nodes is not None
    assert poor.nodes < 4


def test_what_cannot_be_foreseen_is_said() -> None:
    low = outlook(Goal(loss=0.01, deadline=100.0), Seen(losses=course(500)), CURVE, 8, 0.0)
    assert low is not None
    assert "loss 0.01 is out" in low.note
    few = outlook(Goal(loss=0.2, deadline=100.0), Seen(losses=course(30)), CURVE, 8, 0.0)
    assert few is not None
    assert "too few" in few.note
    assert outlook(Goal(deadline=100.0), Seen(losses=course(500)), CURVE, 8, 0.0) is None


@pytest.mark.parametrize(("goal", "bounds"), [(Goal(loss=0.2, deadline=60.0), (2, 8)), (Goal(loss=0.2, budget=1.034), (0, 2))])
def test_the_plan_becomes_a_bound_of_the_allocation(goal: Goal, bounds: tuple[int, int]) -> None:
    spec = TrainingSpec(name="t", script="s", folder="f", max_nodes=8, goal=goal)
    seen = Seen(losses=course(500), node_seconds=3600.0)
    known = Learnt(curve=CURVE, outlook=outlook(goal, seen, CURVE, 8, 0.0))
    asked = demand(TrainingRecord(spec=spec, public_key="", state=TrainingState.ACTIVE, submitted=0.0), known, (), 0.0, draining=False)
    assert (asked.floor_nodes, asked.max_nodes) == pytest.approx(bounds, abs=1)
