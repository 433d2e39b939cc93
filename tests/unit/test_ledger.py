"""The ledger: what was written is there in the next life, whatever ended this one."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from commensal.messages import Generation
from commensald.coordinator import GenerationRecord
from commensald.ledger import _UPGRADES, VERSION, Fragment, Ledger, LedgerError, PilotRecord, TrainingState
from commensald.strict import InputError
from commensald.trainings import TrainingSpec

SPEC = TrainingSpec(name="t", script="/s.py", folder="/f", owner="ada", max_nodes=4)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger(tmp_path / "state")
    yield opened
    opened.close()


def pilot(uuid: str) -> PilotRecord:
    return PilotRecord(uuid=uuid, owner="ada", node="n1", job=None, time_limit=60.0, submitted=1.0)


def record(number: int, incarnation: int = 1) -> GenerationRecord:
    return GenerationRecord(training="t", generation=Generation(incarnation, number), members=("b.1", "a.1"), closed=7, source="a.1")


def test_each_life_is_higher_than_the_one_before(tmp_path: Path) -> None:
    numbers = []
    for _ in range(3):
        ledger = Ledger(tmp_path)
        numbers.append(ledger.incarnation())
        ledger.close()
    assert numbers == [1, 2, 3]


def test_one_daemon_a_state_folder(ledger: Ledger) -> None:
    with pytest.raises(InputError, match="another commensald is running on it"):
        Ledger(ledger.folder)


def test_pilots_are_open_until_closed(ledger: Ledger) -> None:
    ledger.add_pilot(pilot("a"))
    ledger.add_pilot(pilot("b"))
    ledger.queue_pilot("b", "42")
    ledger.close_pilot("a", "gone", 5.0)
    assert [(each.uuid, each.job) for each in ledger.open_pilots()] == [("b", "42")]


def test_a_pilots_start_is_kept_and_the_last_days_closed_ones_are_given(ledger: Ledger) -> None:
    for name, closed in (("a", 5.0), ("b", 9.0), ("c", 7.0)):
        ledger.add_pilot(pilot(name))
        ledger.start_pilot(name, "n7", 3.0)
        ledger.close_pilot(name, "gone", closed)
    assert [(each.uuid, each.node, each.started, each.closed) for each in ledger.closed_pilots(6.0)] == [
        ("c", "n7", 3.0, 7.0),
        ("b", "n7", 3.0, 9.0),
    ]


def test_the_first_schema_is_brought_up_to_date(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "ledger.sqlite") as database:
        database.executescript(f"{_UPGRADES[0]} PRAGMA user_version = 1;")
        database.execute("INSERT INTO pilots (uuid, owner, node, submitted) VALUES ('a', 'ada', 'n1', 1.0)")
    ledger = Ledger(tmp_path)
    ledger.start_pilot("a", "n1", 2.0)
    assert [each.started for each in ledger.open_pilots()] == [2.0]
    ledger.close()


def test_a_pilot_is_never_written_twice(ledger: Ledger) -> None:
    ledger.add_pilot(pilot("a"))
    with pytest.raises(sqlite3.IntegrityError):
        ledger.add_pilot(pilot("a"))


def test_a_training_keeps_its_failures_until_it_is_resumed(ledger: Ledger) -> None:
    ledger.add_training(SPEC, "key", 1.0)
    ledger.record_failure("t", 3, 9.0, "ValueError")
    ledger.set_state("t", TrainingState.PAUSED)
    (kept,) = ledger.trainings()
    assert (kept.spec, kept.state, kept.failures, kept.retry_at, kept.tail) == (SPEC, TrainingState.PAUSED, 3, 9.0, "ValueError")
    ledger.set_state("t", TrainingState.ACTIVE)
    (kept,) = ledger.trainings()
    assert (kept.failures, kept.retry_at) == (0, None)


def test_the_newest_generation_stays_and_a_lower_one_is_refused(ledger: Ledger) -> None:
    assert ledger.generation("t") is None
    ledger.record_generation(record(1))
    ledger.record_generation(record(2))
    ledger.record_generation(record(2))
    with pytest.raises(LedgerError, match=r"generation 1\.1 is lower than the kept 1\.2"):
        ledger.record_generation(record(1))
    ledger.record_generation(record(1, incarnation=2))
    assert ledger.generation("t") == record(1, incarnation=2)


def test_the_last_settled_counts_are_kept(ledger: Ledger) -> None:
    assert ledger.settled("t") == (0, 0)
    ledger.record_settled("t", 5, 50)
    ledger.record_settled("t", 4, 40)
    assert ledger.settled("t") == (4, 40)


def test_fragments_are_completed_and_the_oldest_forgotten(ledger: Ledger) -> None:
    ledger.keep_fragments((Fragment(node="n1", began=1.0, ended=None), Fragment(node="n2", began=2.0, ended=3.0)), 0.0)
    ledger.keep_fragments((Fragment(node="n1", began=1.0, ended=9.0, claimed=True),), 5.0)
    assert ledger.fragments() == (Fragment(node="n1", began=1.0, ended=9.0, claimed=True),)


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    Ledger(tmp_path).close()
    with sqlite3.connect(tmp_path / "ledger.sqlite") as database:
        database.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(InputError, match="newer than this daemon's"):
        Ledger(tmp_path)


def test_a_ledger_that_cannot_be_read_is_refused_and_let_go(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_bytes(b"not a database, whatever its name says" * 100)
    for _ in range(2):
        with pytest.raises(InputError, match=r"ledger\.sqlite: file is not a database"):
            Ledger(tmp_path)


def test_a_drain_outlasts_the_daemon(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.set_draining(True)
    ledger.close()
    ledger = Ledger(tmp_path)
    assert ledger.draining()
    ledger.close()


WRITER = """
import sys
from pathlib import Path
from commensald.ledger import Ledger, PilotRecord
ledger = Ledger(Path(sys.argv[1]))
for number in range(10 ** 6):
    ledger.add_pilot(PilotRecord(uuid=f"{number:06}", owner="ada", node=None, job=None, time_limit=None, submitted=float(number)))
    print(number, flush=True)
"""


def test_what_was_written_survives_a_kill(tmp_path: Path) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    said = [int(writer.stdout.readline()) for _ in range(20)]
    os.kill(writer.pid, signal.SIGKILL)
    said += [int(line) for line in writer.stdout.read().splitlines() if line]
    writer.wait()
    writer.stdout.close()
    ledger = Ledger(tmp_path)
    kept = [each.uuid for each in ledger.open_pilots()]
    ledger.close()
    assert kept[: len(said)] == [f"{number:06}" for number in said]
    assert len(kept) <= len(said) + 1
