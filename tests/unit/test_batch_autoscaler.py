"""The autoscaler, interval by interval."""

from __future__ import annotations

import msgspec

from commensald.allocate.autoscaler import Decisions, Rules, Share, State, news, pinned, step
from commensald.allocate.elastic import ElasticBatch
from commensald.allocate.throughput import Throughput
from commensald.decision import Demand

TIMES = Throughput(alpha_c=0.02, beta_c=0.001, alpha_n=0.01, beta_n=0.001)
RULES = Rules(interval_seconds=100.0)


def training(name: str, least: int = 64, **more: object) -> Demand:
    elastic = ElasticBatch(least=least, most=512, times=TIMES, per_device=64)
    return Demand(training=name, owner="me", max_nodes=8, elastic=elastic, **more)  # type: ignore[arg-type]


def advance(now: float, state: State, arrivals: list[str], finished: list[str], *, rules: Rules = RULES) -> tuple[State, Decisions]:
    """Six nodes; "wide" cannot run on fewer than four of them."""
    demands = {name: training(name, 256 if name == "wide" else 64) for name in ("a", "b", "c", "wide")}
    return step(now, state, arrivals, finished, demands=demands, nodes=6, rules=rules)


def test_the_first_arrival_starts_at_once_with_all_it_can_use() -> None:
    state, decisions = advance(0.0, State(), ["a"], [])
    assert decisions == Decisions(changed={"a": Share(6, 384)}, admitted=("a",))
    assert state == State(running={"a": Share(6, 384)}, due=100.0)


def test_between_intervals_arrivals_wait_and_nodes_of_the_finished_lie_idle() -> None:
    state, _ = advance(0.0, State(), ["a", "b"], [])
    held = state.running["b"]
    state, decisions = advance(50.0, state, ["c"], ["a"])
    assert decisions == Decisions()
    assert state == State(running={"b": held}, waiting=("c",), due=100.0)
    state, decisions = advance(100.0, state, [], [])
    assert decisions.admitted == ("c",)
    assert list(state.running) == ["b", "c"]
    assert sum(share.nodes for share in state.running.values()) == 6
    assert all(share.batch == 64 * share.nodes for share in state.running.values())


def test_who_does_not_fit_is_queued_or_rejected_and_others_pass() -> None:
    before = State(running={"a": Share(3, 192), "b": Share(3, 192)}, due=0.0)
    state, decisions = advance(0.0, before, ["wide"], [])
    assert (decisions.admitted, decisions.rejected) == (("wide",), ())
    state, decisions = advance(100.0, state, ["c"], [])
    assert (state.waiting, decisions.rejected) == (("c",), ())
    dropped, decisions = advance(200.0, state, [], [], rules=Rules(interval_seconds=100.0, drop=True))
    assert (dropped.waiting, decisions.rejected) == ((), ("c",))
    state, decisions = advance(200.0, state, [], ["b"])
    assert decisions.admitted == ("c",)


def test_an_untouched_training_is_not_in_the_changes() -> None:
    state, _ = advance(0.0, State(), ["a", "b"], [])
    state, decisions = advance(100.0, state, [], [])
    assert decisions == Decisions()
    assert state.due == 200.0


def test_a_rescale_that_costs_more_than_an_interval_gives_is_made_only_when_it_is_not_charged() -> None:
    dear = {"a": training("a", stall_seconds=1000.0)}
    before = State(running={"a": Share(5, 320)}, due=0.0)
    kept, _ = step(0.0, before, [], [], demands=dear, nodes=6, rules=RULES)
    assert kept.running["a"].nodes == 5
    published = Rules(interval_seconds=100.0, charged=False)
    assert step(0.0, before, [], [], demands=dear, nodes=6, rules=published)[0].running["a"].nodes == 6


def test_a_finished_training_never_runs_even_if_it_waited() -> None:
    state, _ = advance(0.0, State(running={}, waiting=("a",), due=50.0), ["b"], ["a"])
    assert state.waiting == ("b",)


def test_in_the_daemon_it_stands_before_decide() -> None:
    state = State(running={"a": Share(3, 192), "b": Share(0, None)}, waiting=("c",), due=100.0)
    assert news(state, ["a", "c", "d"]) == (("d",), ("b",))
    demands = [training(name) for name in ("a", "b", "c")]
    held = pinned(state, demands)
    assert [(each.active, each.max_nodes) for each in held] == [(True, 3), (False, 1), (False, 1)]
    assert not pinned(state, [msgspec.structs.replace(demands[0], active=False)])[0].active
