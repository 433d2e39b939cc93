"""Where the coordinator is and how to prove who we are: two small files in a folder that daemon and compute nodes share.

``coordinator.json`` is renamed into place by the daemon at each of its starts, ``commensal.key`` is the CURVE pair of this side (z85,
readable by its owner only).
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec
import zmq

FILE = "coordinator.json"
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


def dealer(context: zmq.Context[zmq.Socket[bytes]], folder: Path) -> tuple[zmq.Socket[bytes], Coordinator]:
    """An encrypted DEALER for the coordinator of ``folder``, not yet connected, and where it is to connect.

    It finds out by itself when the other side is gone and queues nothing for it meanwhile. Raises NoRendezvous.
    """
    there, keys = coordinator(folder), _read(folder / "commensal.key", KeyPair)
    socket = context.socket(zmq.DEALER)
    socket.curve_serverkey = there.server_key.encode()
    socket.curve_publickey = keys.public.encode()
    socket.curve_secretkey = keys.secret.encode()
    socket.linger = 0
    socket.immediate = True
    socket.reconnect_ivl = 50
    socket.heartbeat_ivl = 1000
    socket.heartbeat_timeout = 3000
    return socket, there


def _read(path: Path, kind: type[Kind]) -> Kind:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError) as error:
        raise NoRendezvous(f"{path}: {error}") from error
