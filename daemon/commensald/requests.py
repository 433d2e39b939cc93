"""What ``commensal`` asks the daemon and what it answers: one JSON object a line each way, over the daemon's UNIX socket."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from commensald.coordinator import TrainingStatus
from commensald.forecast.windows import WindowRow
from commensald.goals import Outlook
from commensald.ledger import TrainingState
from commensald.trainings import TrainingSpec


class Request(msgspec.Struct, frozen=True, kw_only=True, tag=str.lower, forbid_unknown_fields=True):
    """Base of all requests."""


class Ping(Request, frozen=True, kw_only=True):
    """Are you there?"""


class Submit(Request, frozen=True, kw_only=True):
    """Take this training; its client key pair is in its folder."""

    spec: TrainingSpec
    public_key: str


class Trainings(Request, frozen=True, kw_only=True):
    """All trainings."""


class Status(Request, frozen=True, kw_only=True):
    """The daemon, its pilots, its rings."""


class Windows(Request, frozen=True, kw_only=True):
    """The idle nodes and how long they will be so."""


class Pause(Request, frozen=True, kw_only=True):
    """Save a training and give its nodes back."""

    training: str


class Resume(Request, frozen=True, kw_only=True):
    """Let a paused, failed or cancelled training go on."""

    training: str


class Cancel(Request, frozen=True, kw_only=True):
    """End a training; its checkpoints stay."""

    training: str


class Drain(Request, frozen=True, kw_only=True):
    """Save everything, give all nodes back and take no more; ``undo`` ends that."""

    undo: bool = False


Any: TypeAlias = Ping | Submit | Trainings | Status | Windows | Pause | Resume | Cancel | Drain


class TrainingRow(msgspec.Struct, frozen=True, kw_only=True):
    """A training in a listing; ``tail`` holds the last lines of a script that failed, ``checkpoint_error`` why the last save did.

    ``starting`` counts nodes whose members are yet to come; ``outlook`` is what its goal takes, ``goal_reached`` whether its loss was
    reached once it has ended; ``waits`` says why an active one has no node.
    """

    name: str
    state: TrainingState
    members: int
    starting: int = 0
    min_nodes: int
    max_nodes: int
    steps: int
    samples: int
    epoch: int
    loss: float | None
    failures: int
    retry_in_seconds: float | None
    tail: str
    checkpoint_error: str | None = None
    outlook: Outlook | None = None
    goal_reached: bool | None = None
    waits: str = ""
    folder: str


class PilotRow(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot in a listing; ``state`` is pending, running or leaving, ``training`` has its node: a running pilot without one is idle."""

    uuid: str
    job: str | None
    node: str | None
    state: str
    training: str | None = None
    ends_in_seconds: float | None


class StatusReport(msgspec.Struct, frozen=True, kw_only=True):
    """The daemon as it is; ``frozen`` says why no decisions are made, ``stopped`` which limit has stopped all pilots.

    ``left_alone`` are nodes on which pilots have died at once.
    """

    version: str
    pid: int
    incarnation: int
    owner: str
    up_seconds: float
    scheduler: str
    snapshot_age_seconds: float | None
    frozen: str | None
    draining: bool
    stopped: str | None
    left_alone: tuple[str, ...]
    nodes: int
    open_nodes: int
    pilots: tuple[PilotRow, ...]
    trainings: tuple[TrainingStatus, ...]


class Failure(msgspec.Struct, frozen=True, kw_only=True, tag="failure"):
    """It could not be done; ``wrong_use`` when the request itself is at fault."""

    error: str
    wrong_use: bool = False


class Done(msgspec.Struct, frozen=True, kw_only=True, tag="done"):
    """It is done; listings fill one of the others."""

    trainings: tuple[TrainingRow, ...] = ()
    status: StatusReport | None = None
    windows: tuple[WindowRow, ...] = ()


Answer: TypeAlias = Done | Failure
