"""The demo's summary on hand-made logs, against figures worked out by hand."""

from __future__ import annotations

import msgspec
import pytest
from demo_log import LOG, event, ring, step

from commensald.demo.intervals import complement, difference, seconds, union
from commensald.demo.summary import Summary, summarise

KEYS = [
    "nodes",
    "primary_jobs",
    "primary_delay_seconds_max",
    "idle_node_seconds",
    "harvested_node_seconds",
    "in_ring_node_seconds",
    "pilots",
    "preemptions",
    "kills",
    "generations",
    "members_max",
    "join_seconds_median",
    "recovery_seconds_median",
    "steps",
    "steps_lost",
    "samples_repeated",
    "samples_skipped",
    "checkpoints",
    "deadline_misses",
    "trainings",
]


def replaced(**changes: object) -> Summary:
    return msgspec.structs.replace(summarise(LOG), **changes)


def test_every_figure_of_a_hand_made_log() -> None:
    summary = summarise(LOG)
    assert summary.nodes == 2
    assert summary.primary_jobs == 2
    assert summary.primary_delay_seconds_max == pytest.approx(0.5)
    assert summary.idle_node_seconds == pytest.approx(59.5 + 90)
    assert summary.harvested_node_seconds == pytest.approx(57.5 + 55.25)
    assert summary.in_ring_node_seconds == pytest.approx(54 + 29.8)
    assert (summary.pilots, summary.preemptions, summary.kills) == (2, 1, 1)
    assert (summary.generations, summary.members_max) == (3, 2)
    assert summary.join_seconds_median == pytest.approx((3 + 25) / 2)
    assert summary.recovery_seconds_median == pytest.approx(1.5)
    assert (summary.steps, summary.steps_lost, summary.samples_repeated, summary.samples_skipped) == (4, 0, 0, 0)
    assert (summary.checkpoints, summary.deadline_misses) == (1, 0)
    assert msgspec.to_builtins(summary.trainings) == ({"name": "net", "samples": 8, "loss": 0.25, "accuracy": 0.75},)


def test_keys_are_the_promised_ones_in_order() -> None:
    assert list(msgspec.to_builtins(summarise(LOG))) == KEYS


def test_order_of_events_does_not_matter() -> None:
    assert summarise(reversed(LOG)) == summarise(LOG)


def test_intervals_end_when_the_clock_stops() -> None:
    short = [entry for entry in LOG if entry["kind"] != "demo.ended"] + [event(50, "demo.ended")]
    summary = summarise(short)
    assert summary.idle_node_seconds == pytest.approx(30 + 50)
    assert summary.harvested_node_seconds == pytest.approx(28 + 45)
    assert summary.in_ring_node_seconds == pytest.approx(25 + 20)
    assert (summary.kills, summary.preemptions, summary.recovery_seconds_median) == (0, 0, None)


def test_a_reserved_node_is_not_idle() -> None:
    summary = summarise([*LOG, event(1, "reservation", name="r", nodes=["n2"], start=10.0, end=30.0)])
    assert summary.idle_node_seconds == pytest.approx(149.5 - 20)
    assert summary.harvested_node_seconds == pytest.approx(112.75 - 20)


def test_a_job_that_never_starts_counts_as_delayed_until_the_end() -> None:
    summary = summarise([*LOG, event(95, "job.assigned", job="9", pilot=None, nodes=["n1"])])
    assert summary.primary_delay_seconds_max == pytest.approx(5)


def test_steps_rolled_back_are_lost_and_a_miss() -> None:
    log = [*LOG, step(99, 3, "2.1", 1, [3, 2])]
    assert summarise(log) == replaced(
        steps=3,
        steps_lost=2,
        deadline_misses=1,
        trainings=summarise(log).trainings,
    )
    assert summarise(log).trainings[0].samples == 6


def test_a_loss_that_only_the_daemon_tells_of_counts() -> None:
    summary = summarise([*LOG, event(99, "steps.lost", training="net", first=5, last=7)])
    assert (summary.steps_lost, summary.deadline_misses) == (3, 1)


def test_a_sample_used_twice_and_one_never_used() -> None:
    log = [entry if entry.get("step") != 2 or entry["kind"] != "step" else step(30, 2, "1.2", 0, [1, 1]) for entry in LOG]
    summary = summarise(log)
    assert (summary.samples_repeated, summary.samples_skipped) == (1, 1)


def test_a_step_that_a_killed_daemon_had_told_already_counts_once() -> None:
    assert summarise([*LOG, step(61.5, 4, "1.3", 1, [1, 0], 0.25)]) == summarise(LOG)
    assert summarise([*LOG, step(61.5, 4, "1.3", 1, [1, 2], 0.25)]).samples_repeated == 2


def test_samples_of_an_epoch_under_way_are_not_skipped() -> None:
    log = [*LOG, step(62, 5, "1.3", 2, [0])]
    assert summarise(log).samples_skipped == 0
    assert summarise([*log, event(63, "training.finished", training="net")]).samples_skipped == 3


def test_a_pilot_killed_at_the_end_of_grace_is_a_miss_and_no_kill() -> None:
    summary = summarise([*LOG, event(79.8, "job.killed", job="3", pilot="p1", reason="grace")])
    assert (summary.deadline_misses, summary.kills, summary.preemptions) == (1, 1, 1)


def test_a_kill_without_survivors_has_no_recovery() -> None:
    log = [entry for entry in LOG if entry["kind"] != "generation"] + [ring(24, "1.1", "p2")]
    assert summarise(log).recovery_seconds_median is None


def test_a_ring_that_never_steps_again_recovers_at_the_end_of_the_clock() -> None:
    log = [entry for entry in LOG if entry.get("generation") != "1.3"]
    assert summarise(log).recovery_seconds_median == pytest.approx(40)


def test_an_empty_log_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        summarise([])


def test_an_event_without_its_fields_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="node"):
        summarise([event(0, "node.state", state="DOWN")])


def test_interval_arithmetic() -> None:
    assert union([(3, 5), (1, 2), (2, 3), (9, 9)]) == ((1, 5),)
    assert complement(((1, 2), (4, 5)), 0, 6) == ((0, 1), (2, 4), (5, 6))
    assert difference(((0, 10),), ((2, 3), (9, 12))) == ((0, 2), (3, 9))
    assert seconds(((0, 2), (5, 6))) == 3
