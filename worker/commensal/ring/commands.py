"""What the trainer and its sidecar say to each other: one msgpack message a packet, tagged by class name.

Commands are carried out strictly in the order in which they were sent, except :class:`GivePort`, which is taken at once: a forming
generation waits for it.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class Packet(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Base of commands and events."""


# ---- trainer -> sidecar


class Attach(Packet, frozen=True, kw_only=True):
    """Map the memory whose descriptor rides along (SCM_RIGHTS): ``words`` float32 from 0, ``window_bytes`` bytes from ``window_offset``."""

    words: int
    window_offset: int
    window_bytes: int


class Form(Packet, frozen=True, kw_only=True):
    """Become ``rank`` of ``size`` in the generation that knows ``nonce``; ``addresses`` are the members' own, in order of rank.

    ``crossover_words``, where given, is used instead of being measured; the same for all members.
    """

    nonce: str
    rank: int
    size: int
    addresses: tuple[str, ...]
    crossover_words: int | None = None


class GivePort(Packet, frozen=True, kw_only=True):
    """The port name that a peer opened for the pairing ``key``."""

    key: str
    port: str


class Reduce(Packet, frozen=True, kw_only=True):
    """Add up words [low, high) over all members, in place, in float32."""

    tag: int
    low: int
    high: int


class Broadcast(Packet, frozen=True, kw_only=True):
    """Copy bytes [low, high) of the window from rank ``root`` to all."""

    tag: int
    root: int
    low: int
    high: int


class Exit(Packet, frozen=True, kw_only=True):
    """Leave the generation together with all its members, then end. Without them it waits until it is killed."""


# ---- sidecar -> trainer


class Ready(Packet, frozen=True, kw_only=True):
    """The transport is initialised; ``init_seconds`` since the first line of the sidecar ran."""

    init_seconds: float


class OpenedPort(Packet, frozen=True, kw_only=True):
    """A port for the pairing ``key`` is open: pass it to ``to_rank``, who gives it to its sidecar as :class:`GivePort`."""

    key: str
    to_rank: int
    port: str


class Formed(Packet, frozen=True, kw_only=True):
    """The generation stands. Reductions of at least ``crossover_words`` go round our own ring (``None``: not used)."""

    seconds: float
    crossover_words: int | None = None


class Done(Packet, frozen=True, kw_only=True):
    """The command with this tag is done; ``seconds`` is how long it took."""

    tag: int
    seconds: float


class Failed(Packet, frozen=True, kw_only=True):
    """The sidecar cannot go on, and ends."""

    text: str


class Gone(Packet, frozen=True, kw_only=True):
    """The sidecar has ended. Made by the client at the end of the stream, once; ``tail`` holds its last words on stderr."""

    tail: str


Command: TypeAlias = Attach | Form | GivePort | Reduce | Broadcast | Exit
Event: TypeAlias = Ready | OpenedPort | Formed | Done | Failed | Gone

PACKET_BYTES = 65536
"""Upper bound of one packet: an Attach or Form for a few thousand members fits."""

_encoder = msgspec.msgpack.Encoder()
_command = msgspec.msgpack.Decoder(Command)
_event = msgspec.msgpack.Decoder(Event)


def encode(packet: Command | Event) -> bytes:
    """One packet."""
    return _encoder.encode(packet)


def decode_command(packet: bytes) -> Command:
    """Raises msgspec.DecodeError on anything else than one command."""
    return _command.decode(packet)


def decode_event(packet: bytes) -> Event:
    """Raises msgspec.DecodeError on anything else than one event."""
    return _event.decode(packet)
