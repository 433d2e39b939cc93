"""A training without a daemon: who is first, who trains, and what outlives the job."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from commensal.messages import Generation
from commensald.coordinator import GenerationRecord
from commensald.coordinator.rendezvous import Rendezvous, announce
from commensald.plain.book import NAME, Book
from commensald.plain.coordinate import chosen, refuse_a_second
from commensald.plain.place import Place, launcher_environment, place
from commensald.strict import InputError
from commensald.trainings import TrainingSpec

SPEC = TrainingSpec(name="t", script="/s", folder="/f", min_nodes=2, max_nodes=3)
RECORD = GenerationRecord(training="t", generation=Generation(1, 4), members=("a", "b"), closed=7, source="a")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, Place(pilot="p5.0.0", first=True, array=False)),
        ({"SLURM_JOB_ID": "7", "SLURM_PROCID": "0"}, Place(pilot="7.0.0", first=True, array=False)),
        ({"SLURM_JOB_ID": "7", "SLURM_PROCID": "2", "SLURM_RESTART_COUNT": "1"}, Place(pilot="7.2.1", first=False, array=False)),
        (
            {"SLURM_JOB_ID": "8", "SLURM_PROCID": "0", "SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_MIN": "3"},
            Place(pilot="8.0.0", first=True, array=True),
        ),
        (
            {"SLURM_JOB_ID": "9", "SLURM_PROCID": "0", "SLURM_ARRAY_TASK_ID": "4", "SLURM_ARRAY_TASK_MIN": "3"},
            Place(pilot="9.0.0", first=False, array=True),
        ),
    ],
)
def test_one_task_of_all_is_first(environment: dict[str, str], expected: Place) -> None:
    assert place(environment, 5) == expected


@pytest.mark.parametrize(
    ("job", "task", "lowest", "index", "expected"),
    [
        ("7.srv", "0", None, None, ("7.0.", True, False)),
        ("7.srv", "2", "", "", ("7.2.", False, False)),
        ("8[3].srv", "0", "3", "3", ("8_3.0.", True, True)),
        ("8[4].srv", "0", "3", "4", ("8_4.0.", False, True)),
        ("9.srv", "0", "3", "3", ("9.0.", True, True)),
    ],
)
def test_one_task_of_all_is_first_under_pbs(
    job: str, task: str, lowest: str | None, index: str | None, expected: tuple[str, bool, bool]
) -> None:
    told = {"PBS_JOBID": job, "PBS_NODENUM": task, "PBS_JOBCOOKIE": "A"}
    here, later = place(told, 5, lowest, index), place({**told, "PBS_JOBCOOKIE": "B"}, 5, lowest, index)
    assert (here.pilot[:-8], here.first, here.array) == expected
    assert here.pilot != later.pilot


def test_a_requeued_job_goes_on() -> None:
    assert launcher_environment({"SLURM_RESTART_COUNT": "2", "A": "b"}) == {"A": "b"}


def test_a_task_of_pbs_knows_its_node() -> None:
    hosts = ["n1.cluster", "n1.cluster", "n2.cluster"]
    assert launcher_environment({"PBS_NODENUM": "1"}, hosts)["COMMENSAL_NODE"] == "n2"
    assert launcher_environment({"COMMENSAL_NODE": "x"}, hosts)["COMMENSAL_NODE"] == "x"


@pytest.mark.parametrize(
    ("held", "free", "expected"),
    [
        ([], [], []),
        ([], ["n1"], []),
        ([], ["n1", "n1"], []),
        ([], ["n2", "n1"], ["n1", "n2"]),
        ([], ["n4", "n3", "n2", "n1"], ["n1", "n2", "n3"]),
        (["n4"], ["n4", "n3", "n2", "n1"], ["n1", "n2", "n4"]),
        (["n1", "n2"], [], ["n1", "n2"]),
    ],
)
def test_all_train_between_the_fewest_and_the_most(held: list[str], free: list[str], expected: list[str]) -> None:
    assert chosen(held, free, SPEC) == frozenset(expected)


def test_the_next_job_knows_the_last_ones_ring(tmp_path: Path) -> None:
    book = Book(tmp_path)
    assert (book.incarnation(), book.generation("t")) == (1, None)
    announce(tmp_path, Rendezvous(address="tcp://127.0.0.1:1", server_key="key", incarnation=book.incarnation()))
    book.record_generation(RECORD)
    after = Book(tmp_path)
    assert (after.incarnation(), after.generation("t"), after.generation("u")) == (2, RECORD, None)


def test_a_damaged_book_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("{")
    with pytest.raises(InputError, match=f"{NAME}: cannot be read"):
        Book(tmp_path)


def test_there_is_one_coordinator_at_a_time(tmp_path: Path) -> None:
    refuse_a_second(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as daemon:
        announce(tmp_path, Rendezvous(address=f"tcp://127.0.0.1:{daemon.getsockname()[1]}", server_key="key", incarnation=1))
        with pytest.raises(InputError, match="is coordinated already"):
            refuse_a_second(tmp_path)
    refuse_a_second(tmp_path)
