"""What is true at this moment of the demo, kept up to date event by event; the views and the injected kills read it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from commensald.demo.occupancy import UP
from commensald.demo.record import (
    Assigned,
    Checkpoint,
    ClusterStarted,
    Ended,
    Entry,
    GenerationMade,
    Killed,
    Measured,
    NodeChanged,
    Reserved,
    Seat,
    Signalled,
    Started,
    StayBegan,
    StayEnded,
    Step,
    StepsLost,
)


class Use(Enum):
    """What a node is used for, from nothing to most."""

    IDLE = "idle"
    PILOT = "pilot"
    RING = "ring"
    RESERVED = "reserved"
    PRIMARY = "primary"
    DOWN = "down"


@dataclass
class Ring:
    """A training as the view shows it."""

    generation: str = "-"
    members: tuple[Seat, ...] = ()
    steps: int = 0
    samples: int = 0
    epoch: int = 0
    accuracy: float | None = None
    losses: deque[float] = field(default_factory=lambda: deque(maxlen=400))


@dataclass
class Counters:
    """Events counted since the start of the log."""

    primaries: int = 0
    pilots: int = 0
    preemptions: int = 0
    kills: int = 0
    generations: int = 0
    checkpoints: int = 0
    steps_lost: int = 0


class Board:
    """The state of the whole demo; ``trainings`` fixes the order of the rings."""

    def __init__(self, trainings: Sequence[str]) -> None:
        self.rings = {name: Ring() for name in trainings}
        self.nodes: list[str] = []
        self.counters = Counters()
        self.jobs: dict[str, str] = {}
        """Pilot -> its running job."""
        self._primary: dict[str, str] = {}
        self._pilot: dict[str, str] = {}
        self._ring: dict[str, tuple[str, str]] = {}
        self._down: set[str] = set()
        self._reserved: list[Reserved] = []

    def use(self, node: str, now: float) -> tuple[Use, str | None]:
        """What a node is used for, and by which training when it is in a ring."""
        if node in self._down:
            return Use.DOWN, None
        if node in self._primary:
            return Use.PRIMARY, None
        if any(node in held.nodes and held.start <= now and (held.end is None or now < held.end) for held in self._reserved):
            return Use.RESERVED, None
        if node in self._pilot:
            return (Use.RING, self._ring[node][1]) if node in self._ring else (Use.PILOT, None)
        return Use.IDLE, None

    def stepping(self, training: str) -> list[Seat]:
        """The members that step now, in the order of their ring: seated in its generation and in a stay."""
        present = {member for member, _ in self._ring.values()}
        return [seat for seat in self.rings[training].members if seat.member in present]

    def apply(self, entry: Entry) -> None:
        """Take one event into account."""
        match entry:
            case ClusterStarted():
                self.nodes = list(entry.nodes)
            case NodeChanged():
                (self._down.discard if entry.state.upper() in UP else self._down.add)(entry.node)
            case Reserved():
                self._reserved.append(entry)
            case Assigned() | Started() | Signalled() | Killed() | Ended():
                self._apply_job(entry)
            case _:
                self._apply_training(entry)

    def _apply_job(self, entry: Assigned | Started | Signalled | Killed | Ended) -> None:
        match entry:
            case Assigned(pilot=None):
                self._primary.update(dict.fromkeys(entry.nodes, entry.job))
            case Started(pilot=None):
                self.counters.primaries += 1
            case Started(pilot=str(pilot)):
                self._pilot.update(dict.fromkeys(entry.nodes, entry.job))
                self.jobs[pilot] = entry.job
                self.counters.pilots += 1
            case Signalled(pilot=str(), reason="preempt"):
                self.counters.preemptions += 1
            case Killed(pilot=str(), reason="injected"):
                self.counters.kills += 1
            case Ended():
                self._free(entry.job)

    def _free(self, job: str) -> None:
        self.jobs = {pilot: held for pilot, held in self.jobs.items() if held != job}
        for node in [node for node, held in self._pilot.items() if held == job]:
            del self._pilot[node]
            self._ring.pop(node, None)
        self._primary = {node: held for node, held in self._primary.items() if held != job}

    def _apply_training(self, entry: Entry) -> None:
        match entry:
            case GenerationMade() if entry.training in self.rings:
                ring = self.rings[entry.training]
                ring.generation, ring.members = entry.generation, entry.members
                self.counters.generations += 1
            case StayBegan():
                self._ring[entry.node] = (entry.member, entry.training)
            case StayEnded():
                self._ring = {node: held for node, held in self._ring.items() if held[0] != entry.member}
            case Step() if entry.training in self.rings:
                ring = self.rings[entry.training]
                ring.steps, ring.epoch = entry.step, entry.epoch
                ring.samples += len(entry.samples)
                ring.losses.append(entry.loss)
            case Measured() if entry.training in self.rings:
                ring = self.rings[entry.training]
                ring.accuracy = entry.values.get("accuracy", ring.accuracy)
            case Checkpoint():
                self.counters.checkpoints += 1
            case StepsLost():
                self.counters.steps_lost += entry.last - entry.first + 1
