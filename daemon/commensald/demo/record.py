"""The event log, typed: what the demo's figures and pictures read out of the logs of cluster, daemon and demo.

Every kind of event that a figure depends on is one frozen struct here; other kinds are passed over, so a log may say more than we read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from commensald.events import Event


class Recorded(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Base of all events; ``at`` is epoch seconds."""

    at: float


class ClusterStarted(Recorded, frozen=True, kw_only=True, tag="cluster.started"):
    """The embedded cluster is up, with these nodes."""

    nodes: tuple[str, ...]
    grace_seconds: float = 0.0


class Assigned(Recorded, frozen=True, kw_only=True, tag="job.assigned"):
    """The instant at which the core gave nodes to a job; ``pilot`` is ``None`` for a primary job."""

    job: str
    pilot: str | None
    nodes: tuple[str, ...]


class Started(Recorded, frozen=True, kw_only=True, tag="job.started"):
    """A job's process was started."""

    job: str
    pilot: str | None
    nodes: tuple[str, ...]


class Signalled(Recorded, frozen=True, kw_only=True, tag="job.signalled"):
    """The cluster signalled every process of a job; ``reason`` is preempt, limit or cancel."""

    job: str
    pilot: str | None
    signal: str
    reason: str


class Killed(Recorded, frozen=True, kw_only=True, tag="job.killed"):
    """SIGKILL to every process of a job; ``reason`` is injected for the demo's own kills, otherwise a deadline that has passed."""

    job: str
    pilot: str | None
    reason: str


class Ended(Recorded, frozen=True, kw_only=True, tag="job.ended"):
    """A job's processes are reaped and its nodes are free."""

    job: str
    pilot: str | None


class NodeChanged(Recorded, frozen=True, kw_only=True, tag="node.state"):
    """A node went down or came back."""

    node: str
    state: str


class Reserved(Recorded, frozen=True, kw_only=True, tag="reservation"):
    """Nodes kept for somebody; ``end`` is ``None`` when it has none."""

    name: str
    nodes: tuple[str, ...]
    start: float
    end: float | None


class Seat(msgspec.Struct, frozen=True, kw_only=True):
    """One member of a generation."""

    member: str
    pilot: str
    node: str


class GenerationMade(Recorded, frozen=True, kw_only=True, tag="generation"):
    """A ring was committed; ``generation`` reads "incarnation.number"."""

    training: str
    generation: str
    members: tuple[Seat, ...]
    reason: str = ""


class StayBegan(Recorded, frozen=True, kw_only=True, tag="stay.began"):
    """A member closed the first step of its stay in a ring."""

    training: str
    member: str
    pilot: str
    node: str
    step: int


class StayEnded(Recorded, frozen=True, kw_only=True, tag="stay.ended"):
    """A member's last closed step of that stay."""

    training: str
    member: str
    step: int


class Step(Recorded, frozen=True, kw_only=True, tag="step"):
    """One settled step; ``at`` is when it closed, ``samples`` are dataset indices, ``loss`` is their mean, ``batch`` what was asked for."""

    training: str
    step: int
    generation: str
    epoch: int
    samples: tuple[int, ...]
    loss: float
    batch: int | None = None


class GoalEnded(Recorded, frozen=True, kw_only=True, tag="training.ended"):
    """A training was ended by its goal."""

    training: str
    reason: str


class Checkpoint(Recorded, frozen=True, kw_only=True, tag="checkpoint"):
    """A manifest is complete."""

    training: str
    step: int


class StepsLost(Recorded, frozen=True, kw_only=True, tag="steps.lost"):
    """The daemon's own word that settled steps ``first`` to ``last`` are gone."""

    training: str
    first: int
    last: int


class Measured(Recorded, frozen=True, kw_only=True, tag="measured"):
    """Figures of settled parameters."""

    training: str
    step: int
    values: dict[str, float]


class Finished(Recorded, frozen=True, kw_only=True, tag="training.finished"):
    """A training reached its last step."""

    training: str


class Failed(Recorded, frozen=True, kw_only=True, tag="training.failed"):
    """A training script raised; ``tail`` holds its last lines."""

    training: str
    tail: str = ""


class DemoStarted(Recorded, frozen=True, kw_only=True, tag="demo.started"):
    """The demo's clock starts."""

    nodes: int
    trainings: tuple[str, ...]


class DemoEnded(Recorded, frozen=True, kw_only=True, tag="demo.ended"):
    """The demo's clock stops: every interval ends here."""


Entry: TypeAlias = (
    ClusterStarted | Assigned | Started | Signalled | Killed | Ended | NodeChanged | Reserved | GenerationMade | StayBegan | StayEnded
    | Step | GoalEnded | Checkpoint | StepsLost | Measured | Finished | Failed | DemoStarted | DemoEnded
)  # fmt: skip

KINDS = frozenset(str(kind.__struct_config__.tag) for kind in Entry.__args__)


def read(events: Iterable[Event]) -> list[Entry]:
    """The entries of a log in order of time. Raises msgspec.ValidationError when an event lacks what its kind promises."""
    entries: list[Entry] = [msgspec.convert(event, Entry, strict=False) for event in events if event["kind"] in KINDS]
    return sorted(entries, key=lambda entry: entry.at)


def clock(entries: Iterable[Entry]) -> tuple[float, float]:
    """Begin and end of the demo's clock; a log without them is bounded by its first and last entry."""
    entries = list(entries)
    begins = [entry.at for entry in entries if isinstance(entry, DemoStarted)] or [entry.at for entry in entries]
    ends = [entry.at for entry in entries if isinstance(entry, DemoEnded)] or [entry.at for entry in entries]
    if not entries:
        raise ValueError("the event log is empty")
    return min(begins), max(ends)
