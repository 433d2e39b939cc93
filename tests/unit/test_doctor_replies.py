"""Answers of Slurm's commands, read for the doctor, from captures of real ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commensald.doctor import replies
from commensald.doctor.facts import Association, Qos, Ring, Trial
from commensald.doctor.gather import answers, listening, skew
from commensald.doctor.probe import Seen, seen, trial
from commensald.schedulers.slurm import text

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


def test_a_trial_jobs_traces() -> None:
    last = Seen("COMPLETING", "1000", "n1")
    wrote = {"began": "1000.7\n", "ended": "1003.0\n", "reached": "yes\n", "ring": '{"seconds": 0.5}\n', "error": "", "log": ""}
    assert trial(last, 1004.5, wrote) == Trial(
        node="n1", folder_seen=True, reached=True, start_seconds=1000.7 - 1000, end_seconds=1.5, ring=Ring(seconds=0.5)
    )
    assert trial(last, 1004.5, wrote | {"ring": "", "error": "no\nlibmpi\n"}).ring == Ring(error="no libmpi")
    assert trial(last, 1004.5, wrote | {"began": "", "log": "no such folder\n"}) == Trial(node="n1", error="no such folder")
    assert trial(None, None, wrote).error == "the trial job did not start within 90 s"
    assert trial(last, None, wrote).error == "the trial job did not end within 90 s"


def test_the_trial_job_among_others() -> None:
    rows = "11|RUNNING|990|n2\n1|PENDING|N/A|\nINFO a line of a site's own\n"
    assert seen(rows, "1") == Seen("PENDING", "N/A", "")
    assert seen(rows, "12") is None


def test_a_clock_in_whole_seconds_is_not_taken_for_skewed() -> None:
    assert skew(-0.9, 0.0) == 0.0
    assert skew(0.0, 0.3) == 0.0
    assert skew(0.3, 0.3) == 0.0
    assert skew(-90.0, 0.1) == -89.0
    assert skew(60.0, 1.0) == 59.0


@pytest.mark.parametrize("version", ["22.05.8", "24.11.5", "26.05.5"])
def test_nodes_that_should_answer(version: str) -> None:
    records = list(text.split((SLURM / version / "scontrol_node_o.txt").read_text(), "NodeName"))
    found = listening(records, "6818")
    assert found["n1"][0] == "127.0.0.1"
    assert [answers(state) for state in ("DOWN*", "IDLE+POWERED_DOWN", "IDLE*", "MIXED+PLANNED")] == [False, False, False, True]
