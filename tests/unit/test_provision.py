"""spotDNN's equations against figures worked out by hand, and against the paper's Table I."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from provisioning import GOAL, LOSS, RESNET, SERVER, cluster, pace

from commensald.allocate.provision.exhaustive import every
from commensald.allocate.provision.loss import Loss, Progress
from commensald.allocate.provision.pace import Goal, Kind, Priced
from commensald.allocate.provision.ring import Ring, SynchronousRing
from commensald.allocate.provision.risk import Revocation, chance_to_miss
from commensald.allocate.provision.search import NoMix, OutOfReach, Profile, plans
from commensald.allocate.provision.spotdnn import algorithm_1, convergence_coefficient, fewest, gpu_batch, price, windows

NO_PCIE = msgspec.structs.replace(SERVER, parameters=1e-9)


def mixes(*rows: tuple[int, ...]) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.array(rows)


def test_algorithm_1_chooses_what_table_1_gives() -> None:
    plan, *others = plans(RESNET, GOAL)
    assert plan.mix == {"g3.8xl": 5, "g3.16xl": 3}
    assert plan.seconds == pytest.approx(2549.02, rel=1e-4)
    assert plan.cost == pytest.approx(5.33, rel=0.015)
    best = next(each for each in others if "best of all mixes" in each.why)
    assert best.mix == {"g4dn.4xl": 2, "g3.8xl": 5, "g3.16xl": 2}  # Srifty+
    assert best.seconds == pytest.approx(2597.34, rel=1e-4)
    assert best.cost == pytest.approx(4.97, rel=0.015)


def test_2_and_4_two_workers_side_by_side() -> None:
    one = cluster((100, 1.0, 1), (100, 2.0, 1), server=NO_PCIE).pace(mixes((1, 1)))
    assert one.step_seconds[0] == pytest.approx(1 / 1.5)
    assert one.batch[0] == pytest.approx(150 / 1.5)
    other = cluster((100, 1.0, 1), (400, 2.0, 1), server=NO_PCIE).pace(mixes((1, 1)))
    assert other.batch[0] == pytest.approx((100 / 1 + 400 / 2) / 1.5)


@pytest.mark.parametrize(
    ("weights", "coefficient"),
    [((1.0,), 0.0), ((0.5, 0.5), math.sqrt(0.5)), ((0.2, 0.5, 0.3), math.sqrt(0.25 + 0.04 + 0.09)), ((0.25,) * 4, math.sqrt(0.75))],
)
def test_5_convergence_coefficient(weights: tuple[float, ...], coefficient: float) -> None:
    assert convergence_coefficient(mixes((1,) * len(weights)), np.array([weights]))[0] == pytest.approx(coefficient)


def test_5_counts_of_a_kind_are_workers_of_their_own() -> None:
    by_kind = cluster((100, 1.0, 1), (100, 3.0, 1)).pace(mixes((2, 1)))
    one_by_one = cluster((100, 1.0, 1), (100, 1.0, 1), (100, 3.0, 1)).pace(mixes((1, 1, 1)))
    assert by_kind.spread[0] == pytest.approx(one_by_one.spread[0])


def test_7_transfers_over_network_and_pcie_add_up() -> None:
    assert SERVER.transfer_seconds(np.array([1.0]), np.array([1.0, 4.0]))[0] == pytest.approx(
        [2 * 11.5 / 142 + 2 * 11.5 / 10000, 2 * 11.5 / 142 + 2 * 4 * 11.5 / 10000]
    )


def test_6_a_worker_alone_takes_what_was_measured_and_contention_adds_to_it() -> None:
    alone = cluster((1024, 1.0, 4))
    assert alone.pace(mixes((1,), (8,))).step_seconds == pytest.approx([1.0, 1 / 8])
    shared = 0.48 * 1200 / 9 + 0.52 * 142
    assert alone.pace(mixes((9,))).step_seconds[0] == pytest.approx((1.0 + 2 * 11.5 * (1 / shared - 1 / 142)) / 9)


def test_8_and_9_contention_begins_where_requests_exceed_the_share() -> None:
    members = np.array([1.0, 4.0, 9.0, 14.0, 20.0])
    assert SERVER.contention(members) == pytest.approx([0, 0, 0.48, 1, 1])
    assert SERVER.worker_bandwidth(members) == pytest.approx([142, 142, 0.48 * 1200 / 9 + 0.52 * 142, 1200 / 14, 60])


def test_10_a_power_of_two_that_fits() -> None:
    assert [gpu_batch(memory, 64.0, 8.0) for memory in (7.8, 8.0, 16.0)] == [256, 512, 1024]


def test_15_and_16_bounds() -> None:
    assert RESNET.performance.most == 13
    steps = (2507.6 - 0.2 * 1024) / 0.3 - 876.5
    assert fewest(RESNET.performance, LOSS, GOAL) == math.ceil(1024 * steps / (2115 * 2600)) == 2
    tight = Goal(loss=0.8, deadline_seconds=1000.0)
    assert fewest(RESNET.performance, LOSS, tight) == math.ceil(1024 * steps / (2115 * 1000)) == 4


def test_windows_are_neighbours_in_speed_beside_what_is_there() -> None:
    two = cluster((1, 1.0, 1), (1, 3.0, 1), quota=2)  # I = slow, slow, fast, fast
    found = [tuple(row) for row in windows(two, 2, 3, mixes((0, 0))[0])]
    assert found == [(0, 2), (1, 1), (2, 0), (1, 2), (2, 1)]
    beside = {tuple(row) for row in windows(two, 1, 2, mixes((1, 0))[0])}
    assert beside == {(1, 0), (2, 0), (1, 1)}


def test_a_large_quota_adds_no_windows() -> None:
    few, many = cluster((1, 1.0, 1), (1, 3.0, 1), quota=3), cluster((1, 1.0, 1), (1, 3.0, 1), quota=10**6)
    assert np.array_equal(windows(few, 1, 3, mixes((0, 0))[0]), windows(many, 1, 3, mixes((0, 0))[0]))


def test_windows_of_fewer_members_than_are_there_are_what_is_there() -> None:
    two = cluster((1, 1.0, 1), (1, 3.0, 1), quota=2)
    assert [tuple(row) for row in windows(two, 1, 3, mixes((3, 0))[0])] == [(3, 0)]
    assert [tuple(row) for row in windows(two, 1, 3, mixes((4, 0))[0])] == [(4, 0)]  # more than are of use are kept all the same


@pytest.mark.parametrize("form", ["convergence", "sqrt", "synchronous"])
def test_3_steps_and_loss_are_inverse(form: str) -> None:
    loss = Loss(g1=50.0, g2=-0.1, g3=300.0, g4=0.4, g5=0.2, form=form)  # type: ignore[arg-type]
    there = pace(batch=200.0, members=4.0, spread=0.8)
    steps = loss.steps(0.7, there)
    assert steps[0] == pytest.approx(280 * {"convergence": math.sqrt(1.2 * 4), "sqrt": 2, "synchronous": 1}[form] / 0.5 - 50)
    assert loss.value(there, steps) == pytest.approx([0.7])
    assert loss.steps(0.2, there)[0] == math.inf


def test_going_on_from_a_loss_takes_the_rest_of_the_same_curve() -> None:
    there = pace(batch=200.0, members=4.0)
    reached = Progress(step=1000.0, loss=float(LOSS.value(there, 1000.0)[0]))  # type: ignore[index]
    assert LOSS.steps(0.8, there, reached) == pytest.approx(LOSS.steps(0.8, there) - 1000.0)
    assert LOSS.steps(1.0, there, Progress(step=1000.0, loss=0.9))[0] == 0.0


def test_going_on_elsewhere_begins_where_that_cluster_has_the_loss() -> None:
    wide = pace(batch=200.0, members=9.0)
    same = float(LOSS.steps(0.9, wide)[0])
    assert LOSS.steps(0.8, wide, Progress(step=123.0, loss=0.9)) == pytest.approx(LOSS.steps(0.8, wide) - same)


def test_a_ring_waits_for_its_slowest_member_and_for_the_reduction() -> None:
    kinds = tuple(Kind(name=str(t), quota=4, charge=1.0, batch=8.0, seconds=t) for t in (1.0, 2.5))
    ring = SynchronousRing(kinds, Ring(batch=64, micro_batch=8, alpha=0.25, beta=0.125))
    alone, mixed, slow, four = ring.pace(mixes((1, 0), (1, 1), (0, 2), (4, 0))).step_seconds
    assert alone == pytest.approx(8.0)
    assert mixed == pytest.approx(6.0 + 0.25)  # 6 shards of 1 s beside 2 of 2.5 s
    assert slow == pytest.approx(10.0 + 0.25)
    assert four == pytest.approx(2.0 + 0.25 + 0.125 * 2)


def test_a_member_without_a_shard_delays_nobody() -> None:
    kinds = tuple(Kind(name=str(t), quota=4, charge=1.0, batch=1.0, seconds=t) for t in (1.0, 50.0))
    ring = SynchronousRing(kinds, Ring(batch=8, micro_batch=1, alpha=0.5))
    assert ring.pace(mixes((1, 1))).step_seconds[0] == pytest.approx(8.5)


def test_a_reduction_hides_behind_the_last_shard() -> None:
    kind = Kind(name="k", quota=4, charge=1.0, batch=1.0, seconds=3.0)
    ring = SynchronousRing((kind,), Ring(batch=4, micro_batch=1, alpha=4.0, gamma=2.0))
    assert ring.pace(mixes((2,))).step_seconds[0] == pytest.approx(3.0 + 5.0)  # (3^2 + 4^2)^(1/2)


def test_fixed_part_of_a_shard() -> None:
    kind = Kind(name="k", quota=4, charge=1.0, batch=100.0, seconds=1.5)
    ring = SynchronousRing((kind,), Ring(batch=40, micro_batch=20, alpha=0.0, alpha_compute=0.5))
    assert ring.pace(mixes((1,))).step_seconds[0] == pytest.approx(2 * (0.5 + 0.01 * 20))


def priced(seconds: float, nodes: int = 1, cost: float = 10.0) -> Priced:
    one = pace(members=float(nodes))
    return Priced(np.array([[nodes]]), one, np.array([seconds]), np.array([seconds]), np.array([cost]))


RATE = Kind(name="k", quota=9, charge=1.0, batch=1.0, seconds=1.0, preemptions_per_hour=0.5)
COST = Revocation(overhead_seconds=10.0, takeover_seconds=200.0)


@pytest.mark.parametrize(
    ("deadline", "chance"),
    [(7199.0, 1.0), (7200.0, 1 - math.exp(-2)), (7310.0, 1 - math.exp(-2) * 3), (7420.0, 1 - math.exp(-2) * 5), (90000.0, 0.0)],
)
def test_risk_of_revocations(deadline: float, chance: float) -> None:
    """Two nodes for two hours at one each two hours: two are expected, and each delays by 10 s and half of 200 s."""
    goal = Goal(loss=1.0, deadline_seconds=deadline)
    found = chance_to_miss(priced(7200.0, nodes=2), (RATE,), goal, None, COST)
    assert found == pytest.approx([chance], abs=1e-9)


def test_risk_of_the_curve_is_the_share_of_refits_that_come_late() -> None:
    refits = Loss(g1=np.zeros((4, 1)), g2=0.0, g3=np.array([[90.0], [99.0], [101.0], [110.0]]), g5=0.0, form="synchronous")
    calm = msgspec.structs.replace(RATE, preemptions_per_hour=None)
    goal = Goal(loss=1.0, deadline_seconds=100.0)
    assert chance_to_miss(priced(100.0), (calm,), goal, refits, COST) == pytest.approx([0.5])
    budget = Goal(loss=1.0, budget=9.5)
    assert chance_to_miss(priced(100.0), (calm,), budget, refits, COST) == pytest.approx([0.75])


def test_where_nothing_is_known_or_asked_no_risk_is_claimed() -> None:
    calm = msgspec.structs.replace(RATE, preemptions_per_hour=None)
    assert chance_to_miss(priced(10.0), (calm,), Goal(loss=1.0, deadline_seconds=20.0), None, COST) is None
    assert chance_to_miss(priced(10.0), (RATE,), Goal(loss=1.0), None, COST) is None


def test_a_budget_alone_buys_speed() -> None:
    cheapest, fastest = plans(RESNET, Goal(loss=0.8))[0], plans(RESNET, Goal(loss=0.8, budget=5.0))[0]
    assert fastest.seconds < cheapest.seconds
    assert cheapest.cost < fastest.cost <= 5.0
    all_mixes = price(RESNET.performance, RESNET.loss, Goal(loss=0.8), windows(RESNET.performance, 1, 13, mixes((0, 0, 0, 0))[0]))
    assert fastest.seconds == pytest.approx(all_mixes.seconds[all_mixes.cost <= 5.0].min())


def test_what_cannot_be_is_refused_with_what_could_be() -> None:
    with pytest.raises(NoMix, match=r"loss 0.8 in 600 s: the fastest takes 2\d\d\d s, the cheapest costs 0.93"):
        plans(RESNET, Goal(loss=0.8, deadline_seconds=600.0))
    with pytest.raises(OutOfReach, match="never falls below 0"):
        plans(RESNET, Goal(loss=0.5))


def test_a_loss_that_too_few_refits_reach_is_outside_the_band() -> None:
    floors = np.linspace(0.4, 0.6, 201)[:, None]
    banded = Profile(RESNET.performance, RESNET.loss, Loss(g1=876.5, g2=-0.2, g3=2507.6, g5=floors, form="sqrt"))
    with pytest.raises(OutOfReach, match=r"95% confidence the curve gets to 0\.59 and no lower"):
        plans(banded, Goal(loss=0.585))
    assert plans(banded, Goal(loss=0.595))[0].seconds > 0


def test_a_mix_that_no_window_is_becomes_the_plan() -> None:
    """Two members at most; the slow and the fast iteration together have the batch that pays, and are no neighbours."""
    narrow = msgspec.structs.replace(NO_PCIE, a1=1.0, b1=-0.5)
    three = cluster((900, 3.0, 1), (100, 2.0, 1), (300, 1.0, 1), server=narrow, quota=1)
    loss = Loss(g1=1.0, g2=-1.0, g3=2000.0, g5=0.0, form="sqrt")
    goal = Goal(loss=1.0, deadline_seconds=1650.0)
    assert algorithm_1(three, loss, goal).best(goal) is None
    plan = plans(Profile(three, loss), goal)[0]
    assert (plan.mix, plan.why) == ({"k0": 1, "k2": 1}, "best of all mixes")


def test_beyond_the_batch_at_which_the_line_ends_nothing_is_promised() -> None:
    loss = Loss(g1=1.0, g2=-1.0, g3=1000.0, g5=0.0, form="sqrt")
    assert loss.steps(1.0, pace(batch=999.0))[0] == pytest.approx(0.0)
    assert loss.steps(1.0, pace(batch=1000.0))[0] == math.inf
    assert loss.steps(1.0, pace(batch=1000.0), Progress(step=1.0, loss=2.0))[0] == math.inf


def test_no_nodes_at_all() -> None:
    with pytest.raises(NoMix, match="ever reaches"):
        plans(Profile(cluster((1, 1.0, 1), quota=0), LOSS), Goal(loss=0.8))


def test_every_mix_is_there_once() -> None:
    found = every((2, 0, 3), 1, 4)
    assert found is not None
    assert sorted(map(tuple, found)) == sorted((a, 0, c) for a in range(3) for c in range(4) if 1 <= a + c <= 4)
    assert every((9, 9), 1, 18, largest=99) is None


def test_algorithm_1_looks_at_neighbours_only_and_pays_for_it() -> None:
    looked = {tuple(row) for row in algorithm_1(RESNET.performance, RESNET.loss, GOAL).mixes}
    assert (0, 5, 3, 0) in looked
    assert (2, 5, 2, 0) not in looked
