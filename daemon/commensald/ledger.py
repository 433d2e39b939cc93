"""The ledger: what must survive the daemon, in SQLite on a local disk.

Each call is one transaction, synced to disk before it returns: a pilot is here before it is submitted, a generation before it is
announced. One daemon per state folder: a lock on the folder is held as long as the ledger is open.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from enum import StrEnum
from pathlib import Path

import msgspec
import psutil

from commensal.messages import Generation
from commensald.coordinator import GenerationRecord
from commensald.coordinator.pace import Seen
from commensald.strict import InputError
from commensald.trainings import TrainingSpec

NETWORK_FILE_SYSTEMS = frozenset(
    ("nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb3", "smbfs", "afs", "9p", "glusterfs", "pvfs2", "panfs")
)
_FIRST_SCHEMA = """
CREATE TABLE daemon (incarnation INTEGER NOT NULL, draining INTEGER NOT NULL) STRICT;
INSERT INTO daemon VALUES (0, 0);
CREATE TABLE pilots (uuid TEXT PRIMARY KEY, owner TEXT NOT NULL, node TEXT, job TEXT, time_limit REAL, submitted REAL NOT NULL,
    closed REAL, reason TEXT) STRICT;
CREATE INDEX open_pilots ON pilots (submitted) WHERE closed IS NULL;
CREATE TABLE trainings (name TEXT PRIMARY KEY, spec TEXT NOT NULL, public_key TEXT NOT NULL, state TEXT NOT NULL, submitted REAL NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0, retry_at REAL, tail TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE generations (training TEXT PRIMARY KEY, incarnation INTEGER NOT NULL, number INTEGER NOT NULL, members TEXT NOT NULL,
    closed INTEGER, source TEXT) STRICT;
CREATE TABLE settled (training TEXT PRIMARY KEY, steps INTEGER NOT NULL, samples INTEGER NOT NULL) STRICT;
CREATE TABLE fragments (node TEXT NOT NULL, began REAL NOT NULL, ended REAL, claimed INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (node, began)) STRICT;
"""
_UPGRADES = (
    _FIRST_SCHEMA,
    "ALTER TABLE pilots ADD COLUMN started REAL; CREATE INDEX closed_pilots ON pilots (closed);",
    "CREATE TABLE paces (training TEXT PRIMARY KEY, seen TEXT NOT NULL) STRICT;",
)
"""What makes schema n + 1 of schema n."""
VERSION = len(_UPGRADES)


class LedgerError(Exception):
    """The ledger refused a generation lower than one already kept."""


class TrainingState(StrEnum):
    """Where a training stands; the last three are ends."""

    ACTIVE = "active"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


class PilotRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot: written without ``job`` before submission, with it afterwards, closed when the scheduler knows it no more.

    ``started`` is when the scheduler started it, ``submitted`` and ``closed`` are by our own clock. A standing pilot has no ``node`` before
    it starts.
    """

    uuid: str
    owner: str
    node: str | None
    job: str | None
    time_limit: float | None
    submitted: float
    started: float | None = None
    closed: float | None = None
    reason: str | None = None


class TrainingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A training; after ``failures`` failures in a row it gets no node before ``retry_at``; ``tail`` is what it said last."""

    spec: TrainingSpec
    public_key: str
    state: TrainingState
    submitted: float
    failures: int = 0
    retry_at: float | None = None
    tail: str = ""


class Fragment(msgspec.Struct, frozen=True, kw_only=True):
    """A time during which ``node`` had no primary job; ``ended`` ``None``: it still lasts. ``claimed``: it was a job that ended it."""

    node: str
    began: float
    ended: float | None
    claimed: bool = False


class Ledger:
    """Opens the ledger of ``folder`` (made 0700 if missing) as a new incarnation.

    Raises InputError when another daemon holds it, a newer one has written it, or SQLite cannot read it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = _lock(folder)
        self._database = sqlite3.connect(folder / "ledger.sqlite", isolation_level=None)
        self._database.row_factory = sqlite3.Row
        try:
            self._begin()
        except (sqlite3.DatabaseError, InputError) as error:
            self.close()
            raise InputError(f"{folder / 'ledger.sqlite'}: {error}") from error

    def _begin(self) -> None:
        self._database.execute(f"PRAGMA journal_mode = {'DELETE' if on_network(self.folder) else 'WAL'}")
        self._database.execute("PRAGMA synchronous = FULL")
        self._upgrade()
        self._database.execute("UPDATE daemon SET incarnation = incarnation + 1")

    def _upgrade(self) -> None:
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise InputError(f"schema {version} is newer than this daemon's {VERSION}")
        for number, statements in enumerate(_UPGRADES[version:], start=version + 1):
            self._database.executescript(f"BEGIN; {statements} PRAGMA user_version = {number}; COMMIT;")

    def close(self) -> None:
        """Close the database and let go of the lock."""
        self._database.close()
        os.close(self._lock)

    def incarnation(self) -> int:
        """This daemon's number: higher than that of every one before it on this state folder."""
        (number,) = self._database.execute("SELECT incarnation FROM daemon").fetchone()
        return int(number)

    def draining(self) -> bool:
        """Whether the daemon takes no nodes."""
        (draining,) = self._database.execute("SELECT draining FROM daemon").fetchone()
        return bool(draining)

    def set_draining(self, draining: bool) -> None:
        """Keep it over restarts."""
        self._database.execute("UPDATE daemon SET draining = ?", (draining,))

    # ---- pilots

    def add_pilot(self, pilot: PilotRecord) -> None:
        """Keep a pilot that is about to be submitted."""
        self._database.execute(
            "INSERT INTO pilots (uuid, owner, node, job, time_limit, submitted) VALUES (?, ?, ?, ?, ?, ?)",
            (pilot.uuid, pilot.owner, pilot.node, pilot.job, pilot.time_limit, pilot.submitted),
        )

    def queue_pilot(self, uuid: str, job: str) -> None:
        """The scheduler took it as ``job``."""
        self._database.execute("UPDATE pilots SET job = ? WHERE uuid = ?", (job, uuid))

    def start_pilot(self, uuid: str, node: str | None, at: float) -> None:
        """It runs on ``node`` since ``at``."""
        self._database.execute("UPDATE pilots SET node = ?, started = ? WHERE uuid = ?", (node, at, uuid))

    def close_pilot(self, uuid: str, reason: str, at: float) -> None:
        """It is gone."""
        self._database.execute("UPDATE pilots SET closed = ?, reason = ? WHERE uuid = ? AND closed IS NULL", (at, reason, uuid))

    def open_pilots(self) -> tuple[PilotRecord, ...]:
        """Pilots that may still be in the queue, oldest first."""
        rows = self._database.execute("SELECT * FROM pilots WHERE closed IS NULL ORDER BY submitted, uuid")
        return tuple(msgspec.convert(dict(row), PilotRecord) for row in rows)

    def closed_pilots(self, since: float) -> tuple[PilotRecord, ...]:
        """Pilots that ended at ``since`` or later, oldest first."""
        rows = self._database.execute("SELECT * FROM pilots WHERE closed >= ? ORDER BY closed, uuid", (since,))
        return tuple(msgspec.convert(dict(row), PilotRecord) for row in rows)

    # ---- trainings

    def add_training(self, spec: TrainingSpec, public_key: str, at: float) -> None:
        """Keep a submitted training; one of the same name that had ended is replaced."""
        self._database.execute("DELETE FROM settled WHERE training = ?", (spec.name,))
        self._database.execute("DELETE FROM paces WHERE training = ?", (spec.name,))
        self._database.execute(
            "INSERT OR REPLACE INTO trainings (name, spec, public_key, state, submitted) VALUES (?, ?, ?, ?, ?)",
            (spec.name, msgspec.json.encode(spec).decode(), public_key, TrainingState.ACTIVE, at),
        )

    def set_state(self, name: str, state: TrainingState) -> None:
        """Move a training to ``state``; a move back to active forgets its failures."""
        failures = ", failures = 0, retry_at = NULL" if state is TrainingState.ACTIVE else ""
        self._database.execute(f"UPDATE trainings SET state = ?{failures} WHERE name = ?", (state, name))

    def record_failure(self, name: str, failures: int, retry_at: float | None, tail: str) -> None:
        """Keep how often its script failed in a row, when it may run again, and its last lines."""
        self._database.execute("UPDATE trainings SET failures = ?, retry_at = ?, tail = ? WHERE name = ?", (failures, retry_at, tail, name))

    def trainings(self) -> tuple[TrainingRecord, ...]:
        """All of them, in the order of submission."""
        rows = self._database.execute("SELECT * FROM trainings ORDER BY submitted, name")
        return tuple(_training(row) for row in rows)

    def training(self, name: str) -> TrainingRecord | None:
        """One of them."""
        row = self._database.execute("SELECT * FROM trainings WHERE name = ?", (name,)).fetchone()
        return None if row is None else _training(row)

    # ---- for the coordinator

    def record_generation(self, record: GenerationRecord) -> None:
        """Keep a training's newest generation. Raises LedgerError when a higher one is kept already."""
        kept = self.generation(record.training)
        if kept is not None and kept.generation > record.generation:
            raise LedgerError(f"training {record.training}: generation {record.generation} is lower than the kept {kept.generation}")
        self._database.execute(
            "INSERT OR REPLACE INTO generations VALUES (?, ?, ?, ?, ?, ?)",
            (
                record.training,
                record.generation.incarnation,
                record.generation.number,
                msgspec.json.encode(record.members).decode(),
                record.closed,
                record.source,
            ),
        )

    def generation(self, training: str) -> GenerationRecord | None:
        """The newest generation of a training."""
        row = self._database.execute("SELECT * FROM generations WHERE training = ?", (training,)).fetchone()
        if row is None:
            return None
        return GenerationRecord(
            training=training,
            generation=Generation(row["incarnation"], row["number"]),
            members=msgspec.json.decode(row["members"], type=tuple[str, ...]),
            closed=row["closed"],
            source=row["source"],
        )

    def record_settled(self, training: str, settled: int, samples: int) -> None:
        """Keep how many steps and samples of a training are settled; they go back only when all members were lost at once."""
        self._database.execute("INSERT OR REPLACE INTO settled VALUES (?, ?, ?)", (training, settled, samples))

    def settled(self, training: str) -> tuple[int, int]:
        """(steps, samples) settled so far."""
        row = self._database.execute("SELECT steps, samples FROM settled WHERE training = ?", (training,)).fetchone()
        return (0, 0) if row is None else (row["steps"], row["samples"])

    def record_pace(self, training: str, seen: Seen) -> None:
        """Keep how fast a training was seen to step."""
        self._database.execute("INSERT OR REPLACE INTO paces VALUES (?, ?)", (training, msgspec.json.encode(seen).decode()))

    def pace(self, training: str) -> Seen:
        """How fast it was seen to step so far."""
        row = self._database.execute("SELECT seen FROM paces WHERE training = ?", (training,)).fetchone()
        return Seen() if row is None else msgspec.json.decode(row["seen"], type=Seen)

    # ---- fragments

    def keep_fragments(self, fragments: tuple[Fragment, ...], oldest: float) -> None:
        """Write these (a known one is completed) and forget those that ended before ``oldest``."""
        with self._database:
            self._database.execute("BEGIN")
            self._database.executemany(
                "INSERT OR REPLACE INTO fragments VALUES (?, ?, ?, ?)",
                [(each.node, each.began, each.ended, each.claimed) for each in fragments],
            )
            self._database.execute("DELETE FROM fragments WHERE ended < ?", (oldest,))

    def fragments(self) -> tuple[Fragment, ...]:
        """All that are kept, oldest first."""
        rows = self._database.execute("SELECT * FROM fragments ORDER BY began, node")
        return tuple(msgspec.convert(dict(row), Fragment, strict=False) for row in rows)


def on_network(folder: Path) -> bool:
    """Whether ``folder`` is on a network file system, where SQLite's shared memory (WAL) does not work (sqlite.org/wal.html)."""
    kind = file_system(folder)
    return kind in NETWORK_FILE_SYSTEMS or kind.startswith("fuse.")


def file_system(folder: Path) -> str:
    """The type of the file system that ``folder`` is on ("ext4", "lustre"...), "" where it is not known."""
    path = folder.resolve()
    mounts = [each for each in psutil.disk_partitions(all=True) if path.is_relative_to(each.mountpoint)]
    nearest = max(mounts, key=lambda each: len(each.mountpoint), default=None)
    return nearest.fstype if nearest is not None else ""


def _lock(folder: Path, patience_seconds: float = 1.0) -> int:
    """An open file that holds the folder's lock; a daemon that was just killed may take a moment to let go of it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InputError(f"state folder {folder}: {error.strerror}") from error
    give_up = time.monotonic() + patience_seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if time.monotonic() > give_up:
                os.close(descriptor)
                raise InputError(f"state folder {folder}: another commensald is running on it") from None
            time.sleep(0.02)


def _training(row: sqlite3.Row) -> TrainingRecord:
    return TrainingRecord(
        spec=msgspec.json.decode(row["spec"], type=TrainingSpec),
        public_key=row["public_key"],
        state=TrainingState(row["state"]),
        submitted=row["submitted"],
        failures=row["failures"],
        retry_at=row["retry_at"],
        tail=row["tail"],
    )
