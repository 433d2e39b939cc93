"""What the daemon asks for when a node was lost."""

from __future__ import annotations

import pytest
from provisioning import RESNET, cluster, pace

from commensald.allocate.provision.loss import Loss, Progress
from commensald.allocate.provision.pace import Goal, Kind
from commensald.allocate.provision.ring import Ring, SynchronousRing
from commensald.allocate.provision.spotdnn import ParameterServer
from commensald.allocate.provision.takeover import takeover

RING = SynchronousRing(
    tuple(Kind(name=name, quota=9, charge=charge, batch=1.0, seconds=t) for name, charge, t in (("fast", 2.0, 1.0), ("slow", 1.5, 2.0))),
    Ring(batch=64, micro_batch=1, alpha=0.0),
)
LOSS = Loss(g1=100.0, g2=0.0, g3=100.0, g5=0.0, form="synchronous")  # loss 0.1 after 900 steps
HALF = Progress(step=450.0, loss=0.2)


def test_nothing_is_asked_for_while_what_is_left_suffices() -> None:
    """450 steps of 64 shards on two fast nodes: 14,400 s, and what the loss costs."""
    found = takeover(RING, LOSS, Goal(loss=0.1, deadline_seconds=14430.0), {"fast": 2}, {"slow": 9}, HALF)
    assert found is not None
    assert (found.ask, found.in_time) == ({}, True)
    assert found.seconds == pytest.approx(14430.0)
    assert found.cost == pytest.approx(4 * 14430.0 / 3600)


def test_the_cheapest_help_that_is_enough() -> None:
    """A fast node is the cheaper one by the sample, and 64 shards divide by four."""
    goal = Goal(loss=0.1, deadline_seconds=14400.0)
    found = takeover(RING, LOSS, goal, {"fast": 2}, {"fast": 9, "slow": 9}, HALF)
    assert found is not None
    assert (found.ask, found.in_time) == ({"fast": 2}, True)
    assert found.seconds == pytest.approx(450 * 16 + 30.0)
    slow = takeover(RING, LOSS, goal, {"fast": 2}, {"slow": 9}, HALF)
    assert slow is not None
    assert slow.ask == {"slow": 1}


def test_only_what_can_be_had_is_asked_for_and_late_is_said() -> None:
    found = takeover(RING, LOSS, Goal(loss=0.1, deadline_seconds=60.0), {"fast": 1}, {"slow": 2}, HALF)
    assert found is not None
    assert (found.ask, found.in_time) == ({"slow": 2}, False)


def test_when_all_were_lost_it_begins_anew_from_where_it_stood() -> None:
    found = takeover(RING, LOSS, Goal(loss=0.1), {}, {"fast": 1, "slow": 1}, HALF, overhead_seconds=0.0)
    assert found is not None
    assert found.ask == {"fast": 1}
    assert found.seconds == pytest.approx(450 * 64.0)


def test_nothing_helps() -> None:
    assert takeover(RING, LOSS, Goal(loss=0.1), {}, {}, HALF) is None
    never = Loss(g1=100.0, g2=0.0, g3=100.0, g5=0.15, form="synchronous")
    assert takeover(RING, never, Goal(loss=0.1), {"fast": 1}, {"fast": 1}, HALF) is None


def test_a_budget_left_is_a_limit_too() -> None:
    goal = Goal(loss=0.1, deadline_seconds=14400.0, budget=17.0)
    found = takeover(RING, LOSS, goal, {"fast": 2}, {"fast": 9}, HALF)
    assert found is not None
    assert found.in_time
    assert found.cost <= 17.0
    poor = takeover(RING, LOSS, Goal(loss=0.1, deadline_seconds=14400.0, budget=1.0), {"fast": 2}, {"fast": 9}, HALF)
    assert poor is not None
    assert not poor.in_time


def test_the_parameter_server_goes_on_from_the_loss_and_keeps_who_is_left() -> None:
    """As in the paper's demonstration: five of eight are revoked; the wider the cluster, the more steps its loss is from the goal."""
    assert isinstance(RESNET.performance, ParameterServer)
    left, standing = {"g3.16xl": 3}, Progress(step=12000.0, loss=1.1)
    found = takeover(RESNET.performance, RESNET.loss, Goal(loss=0.8, deadline_seconds=1500.0), left, {"g4dn.4xl": 5, "g3.8xl": 5}, standing)
    assert found is not None
    assert found.in_time
    assert set(found.ask) <= {"g4dn.4xl", "g3.8xl"}
    assert found.seconds < 1500.0
    alone = takeover(RESNET.performance, RESNET.loss, Goal(loss=0.8, deadline_seconds=1500.0), left, {}, standing)
    assert alone is not None
    assert (alone.ask, alone.in_time) == ({}, False)


def test_the_rest_of_the_way_after_a_revocation() -> None:
    one, here = cluster((100, 1.0, 1)), pace(100.0)
    loss = Loss(g1=50.0, g2=0.0, g3=500.0, g5=0.0, form="sqrt")
    found = takeover(one, loss, Goal(loss=1.0), {"k0": 1}, {}, Progress(step=9.0, loss=2.0), overhead_seconds=30.0)
    assert found is not None
    assert found.seconds == pytest.approx(float(loss.steps(1.0, here)[0] - loss.steps(2.0, here)[0]) + 30.0) == pytest.approx(280.0)
