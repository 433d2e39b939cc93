"""``coordinator.json``: where the coordinator is, for pilots and members to read."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from commensald.strict import InputError

NAME = "coordinator.json"


class Rendezvous(msgspec.Struct, frozen=True, kw_only=True):
    """The daemon's address, its public key (z85), which of its lives it is, and the training whose folder it is."""

    address: str
    server_key: str
    incarnation: int
    training: str = ""


class StandDown(InputError):
    """Another daemon, in a later life, coordinates from this folder."""


def announce(folder: Path, there: Rendezvous) -> None:
    """Rename the file into place. Raises StandDown, InputError."""
    path = folder / NAME
    before = read(folder)
    if before is not None and before.incarnation > there.incarnation:
        lives = f"life {before.incarnation} of a daemon at {before.address} coordinates here, this is life {there.incarnation}"
        raise StandDown(f"{path}: {lives}")
    beside = path.with_name(f".{NAME}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(msgspec.json.encode(there))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


def withdraw(folder: Path, address: str) -> None:
    """Nobody coordinates here any more, if it was the one at ``address`` who did: others may train in this folder."""
    there = read(folder)
    if there is not None and there.address == address:
        with suppress(OSError):  # a folder that is gone announces nothing
            (folder / NAME).unlink()


def read(folder: Path) -> Rendezvous | None:
    """What is announced in ``folder``, ``None`` when nothing readable is."""
    try:
        return msgspec.json.decode((folder / NAME).read_bytes(), type=Rendezvous)
    except (OSError, msgspec.DecodeError):
        return None


def last_port(folder: Path) -> int | None:
    """The port that an earlier life had."""
    before = read(folder)
    return int(before.address.rpartition(":")[2]) if before is not None else None
