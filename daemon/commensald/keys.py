"""CURVE pairs (z85) in files that only their owner may read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import msgspec
import zmq

from commensald.strict import InputError

NAME = "commensal.key"


class KeyPair(msgspec.Struct, frozen=True, kw_only=True):
    """What ``commensal.key`` holds."""

    public: str
    secret: str


def public_key(folder: Path) -> str:
    """The public key of ``folder``'s pair. Raises InputError."""
    return key_pair(folder).public


def key_pair(folder: Path) -> KeyPair:
    """``folder``'s pair, which is made (0600) when there is none. Raises InputError."""
    path = folder / NAME
    try:
        if not path.exists():
            _make(path)
        return msgspec.json.decode(path.read_bytes(), type=KeyPair)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: not a key pair: {error}") from error


def _make(path: Path) -> None:
    """Written beside and linked into place: of two that make it at once, one wins and both read the same pair."""
    public, secret = zmq.curve_keypair()
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(KeyPair(public=public.decode(), secret=secret.decode())))
        file.flush()
        os.fsync(descriptor)
    try:
        os.link(beside, path)
    except FileExistsError:
        return
    finally:
        beside.unlink()
