"""Requests to the embedded cluster and its replies: one JSON object a line over a UNIX socket, one reply a request."""

from __future__ import annotations

from typing import Annotated

import msgspec

from commensald.cluster import Reservation, Snapshot
from commensald.schedulers import PilotSpec

LINE_LIMIT_BYTES = 64 * 1024 * 1024


class GetSnapshot(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Show the whole cluster."""


class SubmitPilot(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Queue a pilot."""

    spec: PilotSpec


class SubmitPrimary(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Queue a primary job: a process that sleeps ``seconds`` and may run for ``time_limit``."""

    seconds: Annotated[float, msgspec.Meta(ge=0)]
    node_count: int = 1
    time_limit: float | None = None
    name: str = "primary"
    owner: str = "somebody"
    tier: int = 1
    priority: float = 0.0


class Cancel(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """End these jobs as ``scancel`` does."""

    ids: tuple[str, ...]


class KillJob(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """SIGKILL every process of a job without notice: an injected fault."""

    id: str


class Reserve(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Add or replace a reservation."""

    reservation: Reservation


class SetNode(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Bring a node up or down."""

    name: str
    up: bool


class Shutdown(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """End all jobs and the cluster."""


class Shown(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Answer to :class:`GetSnapshot`."""

    snapshot: Snapshot


class Submitted(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The job's id."""

    id: str


class Done(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The request was carried out."""


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The request was not carried out, and why."""

    error: str


Request = GetSnapshot | SubmitPilot | SubmitPrimary | Cancel | KillJob | Reserve | SetNode | Shutdown
Reply = Shown | Submitted | Done | Refused

ENCODER = msgspec.json.Encoder()
REQUESTS: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
REPLIES: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)


def line(message: Request | Reply) -> bytes:
    """A message as it travels."""
    return ENCODER.encode(message) + b"\n"
