"""Answers of Slurm's commands, read for the doctor, from captures of real ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commensald.doctor import replies
from commensald.doctor.facts import Association, Qos

SLURM = Path(__file__).parents[1] / "fixtures" / "slurm"
ACCOUNTED = SLURM / "22.05.8-dbd"


def test_every_qos_with_what_it_preempts_and_costs() -> None:
    assert replies.qos((ACCOUNTED / "qos.txt").read_text()) == (
        Qos(name="normal", preempt_modes=frozenset({"CLUSTER"})),
        Qos(name="scav", preempt_modes=frozenset({"REQUEUE"}), grace_seconds=20.0, usage_factor=0.1),
        Qos(name="high", preempts=frozenset({"scav", "scavc"}), preempt_modes=frozenset({"CLUSTER"})),
        Qos(name="scavc", preempt_modes=frozenset({"CANCEL"}), grace_seconds=10.0, exempt_seconds=5.0),
    )


def test_the_owners_associations_and_those_of_its_account() -> None:
    text = (ACCOUNTED / "assoc.txt").read_text().replace("users|||1||||||||||", "users|||1||5||||cpu=9||||")
    assert replies.associations(text, "alice", "LAB2205", None) == (
        Association(account="users", user="alice", default_qos="normal"),
        Association(account="users", limits={"GrpJobs": "5", "GrpTRESMins": "cpu=9"}),
    )
    assert replies.associations(text, "alice", "lab2205", "scavacct") == ()
    assert replies.associations(text, "alice", "other", None) == ()


def test_who_sees_everything() -> None:
    assert replies.operator("User|Def Acct|Admin\nme|a|Operator\n")
    assert not replies.operator("User|Def Acct|Admin\nme|a|None\n")
    assert not replies.operator("")


@pytest.mark.parametrize("version", ["22.05.8", "24.11.5", "26.05.5"])
def test_a_mean_backfill_pass(version: str) -> None:
    found = replies.backfill((SLURM / version / "sdiag.txt").read_text())
    assert found is not None
    assert 0 < found.cycle_seconds < 0.1
    assert found.depth >= 0
    assert replies.backfill("Backfilling stats\n\tTotal cycles: 0\n") is None


def test_where_a_node_listens() -> None:
    assert replies.address({"NodeAddr": "10.0.0.1", "Port": "17001"}, "6818") == ("10.0.0.1", 17001)
    assert replies.address({"NodeAddr": "10.0.0.1"}, "6818") == ("10.0.0.1", 6818)
    assert replies.address({"NodeAddr": "10.0.0.1"}, "(null)") is None


def test_why_a_pilot_was_refused() -> None:
    said = "sbatch: error: Batch job submission failed\nallocation failure: Invalid qos specification\n"
    assert replies.refusal(said) == "allocation failure: Invalid qos specification"
    assert replies.refusal("sbatch: error: invalid partition specified: x") == "invalid partition specified: x"
    assert replies.refusal(" ") == "no reason given"


@given(st.text(alphabet="a|\n0:-=", max_size=200))
def test_no_table_is_too_strange_to_be_read(text: str) -> None:
    replies.qos(text)
    replies.qos(f"Name|GraceTime|UsageFactor|MaxJobsPU\n{text}")
    replies.associations(f"Cluster|Account|User\n{text}", "a", "a", None)
    replies.operator(text)
    replies.backfill(text)
    replies.refusal(text)
