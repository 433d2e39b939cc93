"""The demo's summary: a pure function of its event log, so that anybody can recompute every figure from the same file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

import msgspec

from commensald.demo.history import History, history
from commensald.demo.intervals import seconds
from commensald.demo.occupancy import occupancy, stays
from commensald.demo.record import (
    Assigned,
    Checkpoint,
    DemoStarted,
    Entry,
    GenerationMade,
    GoalEnded,
    Killed,
    Measured,
    Signalled,
    Started,
    Step,
    clock,
    read,
)
from commensald.events import Event


class TrainingSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``samples`` of the final history, ``loss`` of its last step, the newest measured accuracy; ``None`` when there is none.

    ``batches``: those that its steps had, ascending; ``ended``: why, when its goal ended it.
    """

    name: str
    samples: int
    loss: float | None
    accuracy: float | None
    batches: tuple[int, ...] = ()
    ended: str | None = None


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Wall seconds of this machine; intervals end when the demo's clock stops.

    ``primary_delay_seconds_max``: process start less the instant at which the core assigned the job's nodes. ``preemptions``: pilots sent
    SIGTERM for a primary job; ``kills``: pilots SIGKILLed without a SIGTERM. ``generations``: over all trainings, the first included;
    ``members_max``: the largest ring. ``join_seconds_median``: pilot start to its first closed step; ``recovery_seconds_median``: kill to
    the survivors' next closed step. ``steps`` are settled ones; ``steps_lost`` were settled and are absent from the final history.
    ``checkpoints``: complete manifests. ``deadline_misses``: pilots alive at their deadline, plus trainings that lost settled steps.
    """

    nodes: int
    primary_jobs: int
    primary_delay_seconds_max: float | None
    idle_node_seconds: float
    harvested_node_seconds: float
    in_ring_node_seconds: float
    pilots: int
    preemptions: int
    kills: int
    generations: int
    members_max: int
    join_seconds_median: float | None
    recovery_seconds_median: float | None
    steps: int
    steps_lost: int
    samples_repeated: int
    samples_skipped: int
    checkpoints: int
    deadline_misses: int
    trainings: tuple[TrainingSummary, ...]


def summarise(events: Iterable[Event]) -> Summary:
    """Every figure of the demo out of its events, in any order. Raises msgspec.ValidationError on a malformed event."""
    entries = read(events)
    _, stop = clock(entries)
    inside = [entry for entry in entries if entry.at <= stop]
    nodes = occupancy(entries)
    histories = [history(name, entries) for name in training_names(entries)]
    rings = [entry for entry in inside if isinstance(entry, GenerationMade)]
    starts = [entry for entry in inside if isinstance(entry, Started)]
    lost = [past.lost for past in histories]
    return Summary(
        nodes=len(nodes),
        primary_jobs=sum(start.pilot is None for start in starts),
        primary_delay_seconds_max=max(primary_delays(entries), default=None),
        idle_node_seconds=sum(seconds(node.idle) for node in nodes),
        harvested_node_seconds=sum(seconds(node.harvested) for node in nodes),
        in_ring_node_seconds=sum(seconds(spans) for node in nodes for spans in node.in_ring.values()),
        pilots=sum(start.pilot is not None for start in starts),
        preemptions=len({signal.job for signal in preemptions(inside)}),
        kills=len(kills(inside)),
        generations=len({(ring.training, ring.generation) for ring in rings}),
        members_max=max((len(ring.members) for ring in rings), default=0),
        join_seconds_median=_median(join_seconds(inside)),
        recovery_seconds_median=_median(recovery_seconds(entries)),
        steps=sum(len(past.steps) for past in histories),
        steps_lost=sum(lost),
        samples_repeated=sum(past.repeated for past in histories),
        samples_skipped=sum(past.skipped for past in histories),
        checkpoints=len({(entry.training, entry.step) for entry in entries if isinstance(entry, Checkpoint)}),
        deadline_misses=_overstays(entries) + sum(count > 0 for count in lost),
        trainings=tuple(_training(past, entries) for past in histories),
    )


def training_names(entries: Iterable[Entry]) -> list[str]:
    """The demo's trainings, or whatever the log has steps of."""
    entries = list(entries)
    named = [name for entry in entries if isinstance(entry, DemoStarted) for name in entry.trainings]
    return named or sorted({entry.training for entry in entries if isinstance(entry, Step)})


def primary_delays(entries: Sequence[Entry]) -> list[float]:
    """Assignment to process start of every primary job assigned within the clock; a job still waiting counts up to its end."""
    _, stop = clock(entries)
    started = {entry.job: entry.at for entry in entries if isinstance(entry, Started)}
    assigned = [entry for entry in entries if isinstance(entry, Assigned) and entry.pilot is None and entry.at <= stop]
    return [started.get(entry.job, stop) - entry.at for entry in assigned]


def preemptions(entries: Iterable[Entry]) -> list[Signalled]:
    """SIGTERMs sent to pilots because a primary job takes their nodes."""
    return [entry for entry in entries if isinstance(entry, Signalled) and entry.pilot is not None and _term(entry, "preempt")]


def kills(entries: Sequence[Entry]) -> list[Killed]:
    """SIGKILLs of pilots that had no SIGTERM before."""
    warned = {entry.job: entry.at for entry in reversed(entries) if isinstance(entry, Signalled) and _term(entry)}
    killed = {entry.job: entry for entry in reversed(entries) if isinstance(entry, Killed) and entry.pilot is not None}
    return [entry for entry in reversed(killed.values()) if warned.get(entry.job, entry.at) >= entry.at]


def join_seconds(entries: Sequence[Entry]) -> list[float]:
    """For each pilot that ever closed a step: its start to that step."""
    started = {entry.pilot: entry.at for entry in entries if isinstance(entry, Started) and entry.pilot is not None}
    first = {stay.pilot: stay.begin for stay in reversed(stays(entries))}
    return [begin - started[pilot] for pilot, begin in first.items() if pilot in started]


def recovery_seconds(entries: Sequence[Entry]) -> list[float]:
    """For each kill of a ring's member that left survivors: the kill to their next closed step, or to the end of the clock."""
    _, stop = clock(entries)
    killed = kills([entry for entry in entries if entry.at <= stop])
    rings = [(kill, ring) for kill in killed for ring in _rings_at(entries, kill.at) if kill.pilot in _pilots(ring)]
    dead = {kill.pilot: kill.at for kill in killed}
    return [
        _next_step(entries, ring.training, kill.at, stop) - kill.at
        for kill, ring in rings
        if any(dead.get(pilot, stop) > kill.at for pilot in _pilots(ring))
    ]


def _rings_at(entries: Iterable[Entry], at: float) -> Iterable[GenerationMade]:
    """Each training's ring at an instant."""
    return {entry.training: entry for entry in entries if isinstance(entry, GenerationMade) and entry.at <= at}.values()


def _pilots(ring: GenerationMade) -> set[str]:
    return {seat.pilot for seat in ring.members}


def _next_step(entries: Sequence[Entry], training: str, after: float, stop: float) -> float:
    closings = (entry.at for entry in entries if isinstance(entry, Step) and entry.training == training and entry.at > after)
    return min((*closings, stop))


def _overstays(entries: Iterable[Entry]) -> int:
    """Pilots that the cluster had to kill because they lived on at their deadline."""
    return len({entry.job for entry in entries if isinstance(entry, Killed) and entry.pilot is not None and entry.reason != "injected"})


def _training(past: History, entries: Sequence[Entry]) -> TrainingSummary:
    measured = [entry for entry in entries if isinstance(entry, Measured) and entry.training == past.training]
    accuracies = [entry.values["accuracy"] for entry in measured if "accuracy" in entry.values]
    return TrainingSummary(
        name=past.training,
        samples=sum(len(step.samples) for step in past.steps),
        loss=past.steps[-1].loss if past.steps else None,
        accuracy=accuracies[-1] if accuracies else None,
        batches=tuple(sorted({step.batch for step in past.steps if step.batch is not None})),
        ended=next((entry.reason for entry in entries if isinstance(entry, GoalEnded) and entry.training == past.training), None),
    )


def _term(entry: Signalled, reason: str | None = None) -> bool:
    return entry.signal in ("TERM", "SIGTERM") and reason in (None, entry.reason)


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None
