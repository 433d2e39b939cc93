"""What the membership of a training asks its shell to do, in this order."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from commensal.messages import Message
from commensald.coordinator import GenerationRecord


class Persist(msgspec.Struct, frozen=True):
    """Keep this record, synced, before anything that follows is sent."""

    record: GenerationRecord


class Send(msgspec.Struct, frozen=True):
    """Send a message to a member."""

    member: str
    message: Message


class Tell(msgspec.Struct, frozen=True):
    """Write an event; ``ago`` says how many seconds ago it happened."""

    kind: str
    fields: dict[str, object]
    ago: float = 0.0


Effect: TypeAlias = Persist | Send | Tell
