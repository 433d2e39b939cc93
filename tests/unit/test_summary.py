"""The demo's summary on hand-made logs, against figures worked out by hand."""

from __future__ import annotations

import msgspec
import pytest

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


def event(at: float, kind: str, **fields: object) -> dict[str, object]:
    return {"at": at, "kind": kind, **fields}


def job(name: str, pilot: str | None, node: str, assigned: float, started: float, ended: float | None) -> list[dict[str, object]]:
    common = {"job": name, "pilot": pilot, "nodes": [node]}
    life = [event(assigned, "job.assigned", **common), event(started, "job.started", **common, pid=1)]
    return life if ended is None else [*life, event(ended, "job.ended", **common, reason="done", returncode=0)]


def step(at: float, number: int, generation: str, epoch: int, samples: list[int], loss: float = 1.0) -> dict[str, object]:
    return event(at, "step", training="net", step=number, generation=generation, epoch=epoch, samples=samples, loss=loss)


def ring(at: float, generation: str, *pilots: str) -> dict[str, object]:
    members = [{"member": f"{pilot}.1", "pilot": pilot, "node": pilot.replace("p", "n")} for pilot in pilots]
    return event(at, "generation", training="net", generation=generation, members=members, reason="join")


def stay(at: float, kind: str, pilot: str, number: int) -> dict[str, object]:
    fields = {"training": "net", "member": f"{pilot}.1", "pilot": pilot, "node": pilot.replace("p", "n"), "step": number}
    return event(at, f"stay.{kind}", **fields)


# Two nodes for 100 s. n1: a primary job 0-20 and another from 80 (assigned at 79.5); pilot p1 runs 22-79.9, in the ring 25-79.
# n2: down 90-100; p2 runs 5-60 and is killed then, in the ring 30-59.8.
LOG = [
    event(0, "cluster.started", nodes=["n1", "n2"], grace_seconds=10.0),
    event(0, "demo.started", nodes=2, trainings=["net"]),
    *job("1", None, "n1", 0.0, 0.1, 20.0),
    *job("2", "p2", "n2", 5.0, 5.0, 60.25),
    *job("3", "p1", "n1", 22.0, 22.0, 79.9),
    ring(24, "1.1", "p1"),
    stay(25, "began", "p1", 1),
    step(25, 1, "1.1", 0, [2, 0]),
    ring(29, "1.2", "p1", "p2"),
    stay(30, "began", "p2", 2),
    step(30, 2, "1.2", 0, [1, 3]),
    step(59.8, 3, "1.2", 1, [3, 2], 0.5),
    stay(59.8, "ended", "p2", 3),
    event(60, "job.killed", job="2", pilot="p2", reason="injected"),
    ring(61, "1.3", "p1"),
    step(61.5, 4, "1.3", 1, [1, 0], 0.25),
    event(70, "checkpoint", training="net", step=4, seconds=0.1, stall_seconds=0.01, size_bytes=10),
    event(71, "measured", training="net", step=4, values={"accuracy": 0.75}),
    event(79, "stay.ended", training="net", member="p1.1", pilot="p1", node="n1", step=4),
    event(79.5, "job.signalled", job="3", pilot="p1", signal="SIGTERM", reason="preempt"),
    *job("4", None, "n1", 79.5, 80.0, None),
    event(90, "node.state", node="n2", state="DOWN"),
    event(100, "demo.ended"),
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
