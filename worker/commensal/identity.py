"""Who a member is, and what its heartbeats tell of its trainer."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Who this member is, from its launcher."""

    member: str
    pilot: str
    training: str
    node: str
    folder: str
    transport: str

    @staticmethod
    def of(environment: Mapping[str, str]) -> Identity:
        """Raises KeyError outside of a pilot."""
        return Identity(
            member=environment["COMMENSAL_MEMBER"],
            pilot=environment["COMMENSAL_PILOT"],
            training=environment["COMMENSAL_TRAINING"],
            node=environment["COMMENSAL_NODE"],
            folder=environment["COMMENSAL_FOLDER"],
            transport=environment.get("COMMENSAL_TRANSPORT", "mpi"),
        )


class Progress(msgspec.Struct):
    """What a heartbeat tells of the trainer."""

    entered_at: float | None = None
    """Since when it waits for the sidecar."""
    moved: int = 0
    closed_at: float | None = None
    speed: float | None = None
    step_seconds: float = 0.0
    save_seconds: float = 0.0
    saving: bool = False
