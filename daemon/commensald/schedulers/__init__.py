"""Schedulers: one room each, behind one Protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from commensald.cluster import Snapshot


class SchedulerError(Exception):
    """A scheduler did not answer, or not in a way we can read; ``text`` is what it said."""

    def __init__(self, message: str, text: str = "") -> None:
        super().__init__(f"{message}: {text}" if text else message)
        self.text = text


class PilotSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A scavenger job to submit; ``node`` is ``None`` for a standing pilot, which takes whatever comes free."""

    uuid: str
    argv: tuple[str, ...]
    folder: str
    """Where its output goes: ``<folder>/<uuid>.log``."""
    node: str | None = None
    time_limit: float | None = None
    environment: Mapping[str, str] = {}
    partition: str | None = None
    qos: str | None = None
    account: str | None = None


class Scheduler(Protocol):
    """What the daemon needs of a batch scheduler. Every method raises :class:`SchedulerError`."""

    async def snapshot(self) -> Snapshot:
        """The whole cluster now."""

    async def submit(self, spec: PilotSpec) -> str:
        """Queue one preemptible pilot tagged ``commensal:<uuid>``; gives its job id."""

    async def cancel(self, ids: Sequence[str]) -> None:
        """End these jobs; ids that are gone are no error."""

    def rest_seconds(self) -> float:
        """How long it wants to be left alone after what it was asked last; 0 when it does not mind."""

    async def close(self) -> None:
        """End whatever was started to ask it; raises nothing."""
