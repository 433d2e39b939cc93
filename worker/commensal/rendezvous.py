"""Where the coordinator is and how to prove who we are: two small files in a folder that daemon and compute nodes share.

``coordinator.json`` is renamed into place by the daemon at each of its starts, ``commensal.key`` is the CURVE pair of this side (z85,
readable by its owner only).
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TypeVar

import msgspec
import zmq

FILE = "coordinator.json"
ANSWER_SECONDS = 2.0
Kind = TypeVar("Kind", bound=msgspec.Struct)


class NoRendezvous(Exception):
    """A file is missing or unreadable; the message names it."""


class Coordinator(msgspec.Struct, frozen=True, kw_only=True):
    """The daemon's address, its public key, which of its lives it is, and the training that the folder belongs to."""

    address: str
    server_key: str
    incarnation: int
    training: str = ""


class KeyPair(msgspec.Struct, frozen=True, kw_only=True):
    """A CURVE pair in z85 (rfc.zeromq.org/spec/26)."""

    public: str
    secret: str


def coordinator(folder: Path) -> Coordinator:
    """Raises NoRendezvous."""
    return _read(folder / FILE, Coordinator)


def announced(folder: Path) -> Coordinator | None:
    """Who coordinates in ``folder``: a daemon or a job that has not said yet that its training is over, alive or not."""
    try:
        return coordinator(folder)
    except NoRendezvous:
        return None


def answering(folder: Path) -> str | None:
    """The address of the coordinator of ``folder``, if something listens there."""
    there = announced(folder)
    if there is None:
        return None
    address = there.address
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    with socket.socket() as probe:
        probe.settimeout(ANSWER_SECONDS)
        return address if port.isdigit() and probe.connect_ex((host, int(port))) == 0 else None


def dealer(context: zmq.Context[zmq.Socket[bytes]], folder: Path) -> tuple[zmq.Socket[bytes], Coordinator]:
    """An encrypted DEALER for the coordinator of ``folder``, not yet connected, and where it is to connect.

    It finds out by itself when the other side is gone and queues nothing for it meanwhile. Raises NoRendezvous.
    """
    there, keys = coordinator(folder), _read(folder / "commensal.key", KeyPair)
    line = context.socket(zmq.DEALER)
    line.curve_serverkey = there.server_key.encode()
    line.curve_publickey = keys.public.encode()
    line.curve_secretkey = keys.secret.encode()
    line.linger = 0
    line.immediate = True
    line.reconnect_ivl = 50
    line.heartbeat_ivl = 1000
    line.heartbeat_timeout = 3000
    return line, there


def _read(path: Path, kind: type[Kind]) -> Kind:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError) as error:
        raise NoRendezvous(f"{path}: {error}") from error
