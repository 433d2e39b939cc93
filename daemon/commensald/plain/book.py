"""What must survive a job whose coordinator dies with it: the newest generation, in the training's folder."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from commensald.coordinator import GenerationRecord
from commensald.coordinator.pace import Seen
from commensald.coordinator.rendezvous import read
from commensald.strict import InputError

NAME = "plain-job.json"


class Book:
    """A coordinator's Keeper without SQLite, which does not work on every shared file system. Raises InputError."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        before = read(folder)
        self._incarnation = before.incarnation + 1 if before else 1
        self._generation = _read(self._path)
        self._settled = (0, 0)

    def incarnation(self) -> int:
        """Higher than that of every coordinator before it in this folder."""
        return self._incarnation

    def record_generation(self, record: GenerationRecord) -> None:
        """Synced and renamed into place before it is announced."""
        beside = self._path.with_name(f".{NAME}.{os.getpid()}")
        with beside.open("wb") as file:
            file.write(msgspec.json.encode(record))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)
        self._generation = record

    def generation(self, training: str) -> GenerationRecord | None:
        """The newest one, of an earlier job perhaps."""
        kept = self._generation
        return kept if kept is not None and kept.training == training else None

    def record_settled(self, training: str, settled: int, samples: int) -> None:
        """Counts of this job alone: its log tells them, the checkpoints hold what counts."""
        self._settled = (settled, samples)

    def settled(self, training: str) -> tuple[int, int]:
        """(steps, samples) of this job."""
        return self._settled

    def record_pace(self, training: str, seen: Seen) -> None:
        """A job has the nodes that it has: nobody asks how many would be best."""

    def pace(self, training: str) -> Seen:
        """Nothing is known beforehand."""
        return Seen()


def _read(path: Path) -> GenerationRecord | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=GenerationRecord)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
