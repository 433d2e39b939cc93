"""Every message between the daemon and the compute nodes, typed.

One msgpack frame a message, tagged by class name. Times travel as seconds remaining or seconds ago, never as clock readings, so that no
two clocks have to agree. The daemon imports this module and nothing else of the worker.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class Message(msgspec.Struct, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """Base of all messages."""


class Generation(msgspec.Struct, frozen=True, order=True, array_like=True):
    """One ring: the daemon's incarnation, then a number; the highest pair seen is the only one obeyed."""

    incarnation: int
    number: int

    def __str__(self) -> str:
        return f"{self.incarnation}.{self.number}"


class Seat(msgspec.Struct, frozen=True, array_like=True):
    """A member's place in a generation; the order of seats is the order of ranks. ``speed`` is in samples per second."""

    member: str
    address: str
    speed: float


class Batches(msgspec.Struct, frozen=True, array_like=True):
    """Global batches that a training allows, from ``smallest`` to ``largest`` samples, and the samples of one of its shards."""

    smallest: int
    largest: int
    micro: int


class SettledStep(msgspec.Struct, frozen=True, kw_only=True):
    """One settled step, as its lead tells it: the mean loss, the samples by index, its ``nodes`` (members), how long ago it closed.

    ``batch`` is what was asked for: the last step of an epoch has what was left. ``noise_scale``: of the gradient, in samples, if known.
    """

    step: int
    generation: Generation
    epoch: int
    samples: tuple[int, ...]
    loss: float
    closed_ago: float
    nodes: int
    batch: int
    noise_scale: float | None = None


# ---- pilot launcher -> daemon


class PilotHello(Message, frozen=True, kw_only=True):
    """A pilot that has no training process: sent every half second until it has one."""

    pilot: str
    node: str
    job: str
    restarts: int = 0


class PilotDone(Message, frozen=True, kw_only=True):
    """A training process has ended; ``tail`` holds its last lines when it failed."""

    pilot: str
    member: str
    training: str
    returncode: int
    tail: str = ""


# ---- daemon -> pilot launcher


class Assignment(Message, frozen=True, kw_only=True):
    """Run this training script as this member."""

    member: str
    training: str
    name: str
    folder: str
    argv: tuple[str, ...]
    environment: dict[str, str] = {}


class Dismiss(Message, frozen=True, kw_only=True):
    """The pilot is not wanted: end."""

    reason: str


# ---- member -> coordinator


class Hello(Message, frozen=True, kw_only=True):
    """First word after each (re)connection. ``closed`` counts the steps in the state it holds; ``None`` when it holds none."""

    member: str
    pilot: str
    training: str
    node: str
    address: str
    pid: int
    generation: Generation | None = None
    closed: int | None = None


class Warm(Message, frozen=True, kw_only=True):
    """Model built. ``offers`` counts the steps in the state it could start from (newest checkpoint, else 0)."""

    member: str
    signature: str
    offers: int
    batches: Batches


class Beat(Message, frozen=True, kw_only=True):
    """Every 0.25 s. ``entered``: it waits for the sidecar; ``moved`` counts pieces of state that have passed in this generation.

    ``spares`` are sidecars that can form a ring at once; ``trouble`` is what the last one said that could not start.
    """

    member: str
    generation: Generation | None = None
    closed: int | None = None
    closed_ago: float | None = None
    """Age of the last closed step."""
    entered: bool = False
    moved: int = 0
    speed: float | None = None
    deadline: float | None = None
    spares: int = 0
    trouble: str = ""


class Port(Message, frozen=True, kw_only=True):
    """An MPI port name for one pairing of a forming generation; the daemon passes it on to ``to``."""

    generation: Generation
    member: str
    to: str
    key: str
    port: str


class Formed(Message, frozen=True, kw_only=True):
    """This member's sidecar has finished forming the proposed generation; ``offers`` as in Warm, looked up again."""

    member: str
    generation: Generation
    offers: int


class Withdrawn(Message, frozen=True, kw_only=True):
    """Answers Withdraw: the forming sidecar is gone; ``unreachable`` names the members that a probe could not reach."""

    member: str
    generation: Generation
    unreachable: tuple[str, ...] = ()


class Halted(Message, frozen=True, kw_only=True):
    """This member has killed its sidecars up to ``generation``; it holds the state after ``closed`` steps."""

    member: str
    generation: Generation
    closed: int | None
    reason: str


class Closed(Message, frozen=True, kw_only=True):
    """Acknowledges that this member has closed ``step`` (answers Ask, and the step after which all stop)."""

    member: str
    generation: Generation
    closed: int


class Report(Message, frozen=True, kw_only=True):
    """Settled steps since the last report, from the lead only."""

    member: str
    steps: tuple[SettledStep, ...]


class Measured(Message, frozen=True, kw_only=True):
    """Named figures of settled parameters (``training.evaluate``)."""

    member: str
    step: int
    values: dict[str, float]


class Leaving(Message, frozen=True, kw_only=True):
    """This member has to leave: a signal or its own deadline. ``seconds`` is what is left, ``save_seconds`` what a save costs it."""

    member: str
    reason: str
    seconds: float
    save_seconds: float = 0.0


class Saved(Message, frozen=True, kw_only=True):
    """A complete checkpoint exists: its manifest has been written by this member."""

    member: str
    step: int
    seconds: float
    stall_seconds: float
    size_bytes: int


class SaveFailed(Message, frozen=True, kw_only=True):
    """A slice could not be written; the previous checkpoint is untouched."""

    member: str
    step: int
    error: str


class Goodbye(Message, frozen=True, kw_only=True):
    """A clean end of this member; ``finished`` when the training has reached its last step."""

    member: str
    closed: int | None
    finished: bool = False


# ---- coordinator -> member


class Welcome(Message, frozen=True, kw_only=True):
    """Answers Hello: the incarnation that now coordinates, and its limits in seconds."""

    incarnation: int
    beat_seconds: float
    exit_budget: float
    orphan_limit: float


class Propose(Message, frozen=True, kw_only=True):
    """Form this generation in the background, stepping on in the present one if there is one."""

    generation: Generation
    seats: tuple[Seat, ...]
    nonce: str
    batch: int | None = None


class PeerPort(Message, frozen=True, kw_only=True):
    """A port name that ``sender`` opened for this member."""

    generation: Generation
    sender: str
    key: str
    port: str


class Commit(Message, frozen=True, kw_only=True):
    """All members have formed ``generation``: it will be used.

    With ``closed`` ``None`` the switch comes after the step whose hold word equals the member count. Otherwise nobody steps now: members
    start at once from the state after ``closed`` steps. ``source`` sends its state to ``receivers``.
    """

    generation: Generation
    source: str
    receivers: tuple[str, ...]
    closed: int | None = None


class Withdraw(Message, frozen=True, kw_only=True):
    """The proposal is off: kill its forming sidecar, step on in the present ring, answer Withdrawn (``probe``: of whom is reachable)."""

    generation: Generation
    reason: str
    probe: bool = False


class Halt(Message, frozen=True, kw_only=True):
    """Kill every sidecar up to ``generation`` and answer Halted."""

    generation: Generation
    reason: str


class Fence(Message, frozen=True, kw_only=True):
    """This member is not in the announced generation: discard what is not settled and come back as a newcomer."""

    reason: str


class Leave(Message, frozen=True, kw_only=True):
    """Answers Leaving: others stay, so this member may go as if lost once its exit budget is spent."""

    reason: str


class Stop(Message, frozen=True, kw_only=True):
    """All members stop after the same step; ``save`` asks for a checkpoint of it."""

    reason: str
    save: bool


class Save(Message, frozen=True, kw_only=True):
    """Save after the step whose save word equals the member count."""


class Ask(Message, frozen=True, kw_only=True):
    """Answer Closed as soon as ``closed`` steps are closed."""

    closed: int


class Settled(Message, frozen=True, kw_only=True):
    """``closed`` steps are settled: every member has acknowledged them."""

    closed: int


class Settle(Message, frozen=True, kw_only=True):
    """Member -> coordinator: ask all members whether they have closed ``closed`` steps, and tell me when they have."""

    member: str
    generation: Generation
    closed: int


class Deadline(Message, frozen=True, kw_only=True):
    """The daemon's view of when this member's node is taken: seconds remaining."""

    seconds: float


ToDaemon: TypeAlias = (
    PilotHello | PilotDone | Hello | Warm | Beat | Port | Formed | Withdrawn | Halted | Closed | Report | Measured
    | Leaving | Saved | SaveFailed | Goodbye | Settle
)  # fmt: skip
ToWorker: TypeAlias = (
    Assignment | Dismiss | Welcome | Propose | PeerPort | Commit | Withdraw | Halt | Fence | Leave | Stop | Save | Ask | Settled | Deadline
)  # fmt: skip

_encoder = msgspec.msgpack.Encoder()
_to_daemon = msgspec.msgpack.Decoder(ToDaemon)
_to_worker = msgspec.msgpack.Decoder(ToWorker)


def encode(message: Message) -> bytes:
    """One frame."""
    return _encoder.encode(message)


def decode_to_daemon(frame: bytes) -> ToDaemon:
    """Raises msgspec.ValidationError or msgspec.DecodeError on anything else than one message for the daemon."""
    return _to_daemon.decode(frame)


def decode_to_worker(frame: bytes) -> ToWorker:
    """Raises msgspec.ValidationError or msgspec.DecodeError on anything else than one message for a member."""
    return _to_worker.decode(frame)
