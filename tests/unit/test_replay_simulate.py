"""Replays small enough to work out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, repeat

import msgspec
import pytest
from replay_parts import kind, played, pool, synthetic

from commensald.allocate.exact import value
from commensald.decision import Policy
from commensald.replay.measure import Question, answer, report
from commensald.replay.reference import best_totals, reference
from commensald.replay.simulate import Outcome, Rules, Tick
from commensald.replay.trainer import Trainer
from commensald.replay.workload import Costs, Kind
from commensald.strict import InputError


def still() -> float:
    return 0.0


def quiet(what: str) -> Tick:
    return lambda share: None


def lost(outcome: Outcome) -> tuple[float, float]:
    return outcome.points[-1].rescale_lost, outcome.points[-1].preempt_lost


def test_nodes_that_train_all_the_time_train_at_their_rate() -> None:
    outcome = played(pool(100.0, (0.0, "ab", "")), repeat(kind()), trainers=1)
    assert (outcome.trained, outcome.preempted, lost(outcome)) == (200.0, 0, (0.0, 0.0))
    assert outcome.used_node_seconds(100.0) == 200.0


def test_growing_costs_its_stall_at_the_rate_before() -> None:
    outcome = played(pool(300.0, (0.0, "ab", ""), (100.0, "cd", "")), repeat(kind(grow_stall=10.0)), trainers=1, charge_cold_start=False)
    assert lost(outcome) == (20.0, 0.0)
    assert outcome.trained == 200.0 + 800.0 - 20.0


def test_a_cold_start_is_charged_at_the_new_rate_or_not_at_all() -> None:
    trace = pool(100.0, (0.0, "ab", ""))
    assert played(trace, repeat(kind(grow_stall=10.0)), trainers=1).trained == 180.0
    assert played(trace, repeat(kind(grow_stall=10.0)), trainers=1, charge_cold_start=False).trained == 200.0


def test_the_allocator_is_told_of_both_stalls() -> None:
    trainer = Trainer("t", kind(grow_stall=7.0, shrink_stall=3.0), nodes=frozenset("abcd"))
    assert value(trainer.demand(), 4, 6, 100.0).tolist()[3:] == [300.0 - 3 * 4, 400.0, 500.0 - 7 * 4, 600.0 - 7 * 4]


def test_a_new_node_warms_up_and_the_others_work() -> None:
    outcome = played(pool(300.0, (0.0, "ab", ""), (100.0, "cd", "")), repeat(kind(warmup=10.0)), trainers=1)
    assert lost(outcome) == (2 * 10.0 + 2 * 10.0, 0.0)


def test_a_preemption_is_charged_once_however_many_nodes_leave() -> None:
    outcome = played(pool(200.0, (0.0, "abcd", ""), (100.0, "", "abc")), repeat(kind(shrink_stall=5.0)), trainers=1)
    assert (outcome.preempted, lost(outcome)) == (1, (0.0, 20.0))
    assert outcome.trained == 400.0 + 100.0 - 20.0


def test_a_planned_shrink_costs_its_stall_and_so_does_the_preemption_before_it() -> None:
    """The first of two equal trainers loses both its nodes; the second gives it one."""
    trace, equal = pool(200.0, (0.0, "abcd", ""), (100.0, "", "ab")), Policy(allocator="equal-fair")
    outcome = played(trace, repeat(kind(shrink_stall=5.0)), trainers=2, policy=equal)
    assert (outcome.preempted, lost(outcome)) == (1, (10.0, 10.0))
    assert outcome.trained == 400.0 + 200.0 - 20.0


def test_work_that_is_owed_when_nodes_leave_is_still_owed() -> None:
    """Five seconds are lost at each of three preemptions a second apart, and nothing becomes less than nothing."""
    trace = pool(103.0, (0.0, "abcd", ""), (100.0, "", "a"), (101.0, "", "b"), (102.0, "", "c"))
    outcome = played(trace, repeat(kind(shrink_stall=5.0)), trainers=1)
    assert lost(outcome) == (0.0, 20.0 + 15.0 + 10.0)
    assert outcome.trained == 400.0


def test_who_finishes_makes_room_at_once_or_when_the_pool_changes() -> None:
    trace = pool(300.0, (0.0, "ab", ""), (200.0, "c", ""))
    now = played(trace, repeat(kind(samples=100.0)), trainers=1)
    assert (now.finished, now.trained) == (6, 2 * 200.0 + 3 * 100.0)
    legacy = played(trace, repeat(kind(samples=100.0)), trainers=1, finish_is_event=False)
    assert (legacy.finished, legacy.trained) == (1, 200.0)


def test_trainers_come_in_the_order_of_the_queue() -> None:
    names: list[str] = []

    def queue() -> Iterator[Kind]:
        for number in count():
            names.append(f"t{number}")
            yield kind(name=names[-1], samples=50.0, max_nodes=1)

    outcome = played(pool(120.0, (0.0, "ab", "")), queue(), trainers=2)
    assert (names, outcome.finished) == (["t0", "t1", "t2", "t3", "t4", "t5"], 4)


def test_the_best_totals_are_those_of_every_possible_split() -> None:
    odd = kind(curve=((1, 1.0), (2, 5.0), (3, 5.5), (4, 9.0)), min_nodes=2, max_nodes=4)
    pairs = [max(odd.rate(a) + odd.rate(b) for a in (0, 2, 3, 4) for b in (0, 2, 3, 4) if a + b <= n) for n in range(9)]
    assert best_totals(odd, 2, 8).tolist() == pairs


@pytest.mark.parametrize("seed", range(3))
def test_for_trainers_all_alike_the_reference_needs_no_replay(seed: int) -> None:
    """Another name is enough for the long way."""
    trace, rates = synthetic(seed), ((1, 10.0), (2, 17.0), (4, 35.0), (8, 60.0))
    alike = kind(curve=rates, max_nodes=8, samples=7000.0, grow_stall=9.0)
    short, long = (reference(trace, kinds, 3, still, quiet) for kinds in ((alike,), (alike, msgspec.structs.replace(alike, name="other"))))
    assert long.best == pytest.approx(short.best, rel=1e-9)
    assert long.dedicated == pytest.approx(short.dedicated, rel=1e-9)


def test_the_report_is_recomputed_from_what_happened() -> None:
    trace = pool(200.0, (0.0, "ab", ""), (100.0, "cd", ""))
    asked = Question(kinds=(kind(),), rules=Rules(trainers=1), costs=Costs(grow_stall=10.0), measured_ring=True)
    figures = report(answer(asked, trace, still, quiet), trace, seconds=2.5)
    assert (figures.n_eq, figures.events, figures.seconds) == (3.0, 2, 2.5)
    assert figures.u == pytest.approx((600.0 - 20.0 - 20.0) / 600.0)
    assert (figures.u_star, figures.rescale_loss) == (1.0, pytest.approx(40.0 / 600.0))
    assert figures.u_measured_ring == pytest.approx((600.0 - 2 * 0.15 - 2 * 7.0 - 2 * 0.15 - 2 * 7.0) / 600.0)
    assert figures.primary_delay_seconds_mean is None


def test_work_in_speedup_is_seconds_of_one_node() -> None:
    fast = kind(curve=((1, 50.0), (2, 80.0)), samples=1000.0, max_nodes=2).in_speedup()
    assert (fast.samples, [fast.rate(nodes) for nodes in range(3)]) == (20.0, [0.0, 1.0, 1.6])


def test_a_pool_too_small_for_anybody_is_refused() -> None:
    asked = Question(kinds=(kind(min_nodes=8, max_nodes=8),), rules=Rules(trainers=1))
    with pytest.raises(InputError, match=r"1\.00 nodes were idle on average: too few"):
        answer(asked, pool(10.0, (0.0, "a", "")), still, quiet)
