"""What broke others on Slurm's output, submission and scale, each a row of shared/research/peers.md, section B2 (1 to 41, 69, 72, 73).

Of the others, 66 is in test_checkpoint.py, 67 in test_deadline.py, 68 and 70 in tests/ring, 71 in test_limits.py. What only a live Slurm
shows of 11, 19, 25, 27 and 33 is in tests/slurm/test_bad_input.py, a preempted job that lives on (32) in test_reconcile.py.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from slurm_captures import MARK, VERSIONS, from_json, shown_jobs, shown_nodes
from slurm_captures import show as shown

from commensald.cluster import Facts, Job, JobState, Node, NodeState, Snapshot
from commensald.forecast.claims import holders
from commensald.harvest import FLAGS, STATES, Harvest, harvest, harvestable, unknown_flags
from commensald.node_lists import node_names
from commensald.schedulers import PilotSpec, SchedulerError
from commensald.schedulers.slurm import commands, names, records, states, text, times
from commensald.schedulers.slurm.bindings import Bindings, BindingsError
from commensald.schedulers.slurm.jobs import jobs

OWNERS = """
import asyncio, sys
from commensald.schedulers.slurm import text
from commensald.schedulers.slurm.jobs import jobs
from commensald.schedulers.runner import Runner
shown = asyncio.run(Runner(10).run(["cat", sys.argv[1]], {"PATH": "/usr/bin:/bin"}))
print([job.owner for job in jobs(text.jobs(shown, sys.argv[2]))])
"""


def node(state: str, cpus_used: int = 0) -> Node:
    base, flags = states.node_state(state)
    return Node(name="n1", state=base, flags=flags, cpus=4, cpus_used=cpus_used)


def one(version: str, old: str, new: str) -> Job:
    """The job of ``alice`` named run1 with something else in its line."""
    line = next(each for each in shown(version, "job").split("\n") if "JobName=run1" in each)
    assert old in line
    return jobs(text.jobs(line.replace(old, new, 1) + "\n", MARK))[0]


@pytest.mark.parametrize(
    ("row", "state", "usable"),
    [
        (1, "IDLE*", False),
        (1, "IDLE+NOT_RESPONDING", False),
        (1, "IDLE-", True),
        (1, "MIXED-", False),
        (1, "ALLOCATED-", False),
        (2, "IDLE+DYNAMIC_NORM+MAINTENANCE+RESERVED+PLANNED", False),
        (2, "MIXED+DRAIN", False),
        (2, "IDLE+DYNAMIC_NORM", True),
        (3, "idle+DRAIN", False),
        (4, "IDLE+DRAIN", False),
        (4, "DRAINED", False),
        (5, "IDLE+PLANNED", True),
        (5, "IDLE+A_FLAG_OF_NEXT_YEAR", False),
        (6, "FUTURE", False),
        (6, "UNKNOWN", False),
        (6, "INVAL", False),
        (6, "IDLE+POWERED_DOWN", False),
        (6, "IDLE~", False),
        (6, "IDLE#", False),
        (6, "IDLE%", False),
        (6, "IDLE!", False),
        (6, "IDLE$", False),
        (6, "IDLE^", False),
        (6, "IDLE@", False),
        (6, "IDLE+BLOCKED", False),
        (6, "IDLE+CLOUD", True),
        (29, "IDLE+MAINTENANCE+RESERVED", False),
    ],
)
def test_rows_1_to_6_and_29_which_nodes_are_ours_to_take(row: int, state: str, usable: bool) -> None:
    assert harvestable(node(state)) is usable


def test_row_2_captures_are_real() -> None:
    assert {flag for version in VERSIONS for each in shown_nodes(version) for flag in each.flags} <= FLAGS.keys()


def test_row_5_an_unknown_flag_is_reported_and_not_used() -> None:
    assert unknown_flags([node("IDLE+BRAND_NEW")]) == {"BRAND_NEW"}


def test_row_6_the_tables_are_total() -> None:
    assert STATES.keys() == set(NodeState)
    assert {states.job_state([word]) for word in states.JOBS} == set(JobState) - {JobState.UNKNOWN}


def test_row_7_allocation_is_cross_checked() -> None:
    found = {each.name: each for each in shown_nodes("22.05.8")}
    assert (found["n2"].state, found["n2"].cpus_used) == (NodeState.MIXED, 1)


@pytest.mark.parametrize("version", ["24.05.0", "23.11.7", "26.05.5"])
def test_rows_8_to_10_bindings_of_another_release_are_refused_and_never_imported_here(version: str, tmp_path: Path) -> None:
    (tmp_path / "pyslurm.py").write_text("__version__ = '24.11.0'\n")
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)}
    with pytest.raises(BindingsError, match="does not fit"):
        asyncio.run(Bindings(10.0, environment).start(version))
    assert "pyslurm" not in sys.modules


@pytest.mark.parametrize("locale", ["C", "de_DE", "de_DE.UTF-8", "C.UTF-8"])
def test_rows_11_and_12_bytes_that_are_no_utf_8_hide_nothing(locale: str, tmp_path: Path) -> None:
    name = b"d\xe9d\xe9 job \xff"
    line = next(each for each in shown("24.11.5", "job").split("\n") if "JobName=run1" in each).replace("JobName=run1", "JobName=NAME")
    path = tmp_path / "shown"
    path.write_bytes((line + "\n").encode().replace(b"NAME", name) + (line + "\n").encode())
    done = subprocess.run(
        [sys.executable, "-c", OWNERS, path, MARK],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": os.environ["PATH"], "LANG": locale, "LC_ALL": locale},
    )
    assert done.stdout == "['alice', 'alice']\n", done.stderr
    assert commands.environment(None, None)["LC_ALL"] == "C.UTF-8"


def test_rows_13_to_16_no_json_is_parsed_in_the_daemon() -> None:
    every = [*commands.JOBS, *commands.NODES, *commands.PARTITIONS, *commands.RESERVATIONS, *commands.CONFIG, *commands.SDIAG]
    assert not any("json" in word for word in [*every, *commands.own_jobs("me")])
    assert {each.id for each in shown_jobs("24.11.5")} == {each.id for each in jobs(from_json("24.11.5", "job"))}


def test_row_17_a_word_cut_by_a_column_is_no_state() -> None:
    assert states.job_state(["COMPLETININVALID"]) is JobState.UNKNOWN


@pytest.mark.parametrize("name", ["a b  c", "a|b", "(PartitionTimeLimit)0:00", "a;b'c\"d", "x=y", "x" * 1000, "\t", "-"])
def test_rows_18_and_19_names_move_no_column(name: str) -> None:
    found = one("24.11.5", "JobName=run1", f"JobName={name}")
    assert (found.name, found.owner, found.state, found.nodes) == (name, "alice", JobState.RUNNING, ("n1",))


def test_row_20_the_environment_of_a_user_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SQUEUE_FORMAT", "SINFO_FORMAT", "SLURM_TIME_FORMAT", "SLURM_CLUSTERS", "SBATCH_PARTITION", "SLURM_JOB_ID", "LANG", "TZ"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm/slurm.conf")
    assert commands.environment(None, None, "%s~a") == {
        "PATH": commands.PATH,
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC0",
        "SLURM_CONF": "/etc/slurm/slurm.conf",
        "SLURM_TIME_FORMAT": "%s~a",
    }
    assert commands.environment(None, "/b", None).keys() == {"PATH", "LC_ALL", "SLURM_CONF"}


@pytest.mark.parametrize(
    ("row", "written", "seconds"),
    [
        (21, "UNLIMITED", None),
        (21, "INFINITE", None),
        (21, "infinite", None),
        (22, "Partition_Limit", None),
        (22, "None", None),
        (23, "Unknown", None),
        (24, "N/A", None),
        (24, "NOT_SET", None),
        (24, "INVALID", None),
        (25, "3-00:00", 3 * 86_400),
        (25, "4:00", 240),
        (25, "2-12", 2 * 86_400 + 12 * 3600),
        (25, "4", 240),
        (25, "1:02:03", 3723),
        (25, "1-02:03:04", 86_400 + 7384),
        (26, "416-16:00:00", 416 * 86_400 + 16 * 3600),
        (26, "-0:00:16", -16),
        (31, "365-00:00:00", 365 * 86_400),
    ],
)
def test_rows_21_to_26_and_31_durations(row: int, written: str, seconds: float | None) -> None:
    assert times.duration(written) == seconds


@pytest.mark.parametrize("written", ["a while", "1:2:3:4", "1-", "-", "30.5", "٣", "1_0", " 4"])
def test_rows_24_and_25_what_is_no_duration_is_refused_with_its_text(written: str) -> None:
    with pytest.raises(SchedulerError) as caught:
        times.duration(written)
    assert caught.value.text == written


@pytest.mark.parametrize(
    ("row", "written", "at"), [(22, "None", None), (23, "Unknown", None), (33, "1796000256", 1796000256.0), (33, "0", None)]
)
def test_rows_22_23_and_33_instants(row: int, written: str, at: float | None) -> None:
    assert times.instant(written) == at


def test_row_33_a_time_without_offset_is_refused() -> None:
    with pytest.raises(SchedulerError):
        times.instant("2026-11-07T09:18:44")


def test_row_24_an_unlimited_job_is_none_and_never_0() -> None:
    found = one("22.05.8", "TimeLimit=00:20:00", "TimeLimit=UNLIMITED")
    assert found.time_limit is None
    assert holders_say_forever(one("22.05.8", f"EndTime=1796001499{MARK}", "EndTime=Unknown"))


def holders_say_forever(job: Job) -> bool:
    seen = Snapshot(taken=0.0, nodes=(node("ALLOCATED"),), jobs=(job,), reservations=(), facts=Facts(product="slurm", version="1"))
    return holders(seen, "me", 0.0).free_from["n1"] == float("inf")


@pytest.mark.parametrize("written", ["123", "123_4", "123_[4-7%2]", "123_[9201-10000%500]", "123_[1,5-9]", "9380968+0"])
def test_row_27_ids_are_opaque(written: str) -> None:
    assert names.job_id(written) == written


@pytest.mark.parametrize("tasks", ["5-20", "1,5-9", "0-98:2", "9201-10000", "1-3,..."])
def test_row_27_waiting_tasks_of_an_array(tasks: str) -> None:
    line = next(each for each in shown("24.11.5", "job").split("\n") if "ArrayTaskId=5-20" in each)
    found = jobs(text.jobs(line.replace("ArrayTaskId=5-20", f"ArrayTaskId={tasks}") + "\n", MARK))
    assert len(found) == 3
    assert all(each.id.startswith("7_") and each.state is JobState.PENDING for each in found)
    assert [each.start for each in found[1:]] == [None, None]


def test_row_28_a_task_that_has_started_goes_by_its_own_id() -> None:
    line = next(each for each in shown("24.11.5", "job").split("\n") if "ArrayJobId=7 ArrayTaskId=1 " in each)
    found = jobs(text.jobs(line + "\n", MARK))[0]
    assert f"JobId={found.id} " in line
    assert found.state is JobState.RUNNING


def test_row_29_preempted_has_ended_and_requeued_is_pending() -> None:
    assert states.job_state(["PREEMPTED"]) is JobState.ENDED
    assert states.job_state(["REQUEUED"]) is JobState.PENDING
    assert states.job_state(["CANCELLED", "COMPLETING"]) is JobState.COMPLETING
    assert states.job_state(["CANCELLED by 1060117917"]) is JobState.ENDED


@pytest.mark.parametrize(
    ("asked", "most", "minutes"),
    [(None, None, 10_080), (None, 86_400.0, 1440), (3599.0, 86_400.0, 59), (90_000.0, 600.0, 10), (5.0, None, 1)],
)
def test_rows_30_and_72_a_limit_is_finite_whole_and_what_the_partition_allows(
    asked: float | None, most: float | None, minutes: int
) -> None:
    argv = commands.sbatch(PilotSpec(uuid="u", argv=("a",), folder="/f"), commands.limit_seconds(asked, most, 7 * 86_400.0))
    assert f"--time={minutes}" in argv


@pytest.mark.parametrize(("seconds", "warning"), [(60.0, 0), (239.0, 0), (240.0, 60), (86_400.0, 60)])
def test_row_69_a_short_pilot_is_not_told_to_end_as_it_begins(seconds: float, warning: int) -> None:
    assert f"--signal=USR1@{warning}" in commands.sbatch(PilotSpec(uuid="u", argv=("a",), folder="/f"), seconds)


def test_row_31_limits_are_read_anew_in_every_snapshot() -> None:
    assert one("22.05.8", "TimeLimit=00:20:00", "TimeLimit=365-00:00:00").time_limit == 365 * 86_400.0


def test_row_32_a_stale_preemption_is_seen_only_on_nodes() -> None:
    line = next(each for each in shown("24.11.5", "job").split("\n") if "PreemptTime=None" in each)
    for word, at in (("RUNNING", 7.0), ("PENDING", None), ("CONFIGURING", 7.0), ("CANCELLED", None)):
        state = line.partition(" JobState=")[2].partition(" ")[0]
        given = line.replace("PreemptTime=None", f"PreemptTime=7{MARK}").replace(f" JobState={state}", f" JobState={word}")
        assert jobs(text.jobs(given + "\n", MARK))[0].preempted_at == at


@pytest.mark.parametrize(
    ("row", "printed"),
    [
        (34, "Submitted batch job 3969755 on cluster nautilus\n"),
        (34, "3969755;nautilus\n"),
        (35, "sbatch: INFO: Note that 128 GB per node is the most\n3969755\n"),
        (35, "no partition specified, using 42 defaults\nSubmitted batch job 3969755\n"),
        (36, "3969755"),
        (37, "3969755\nthank you for using the cluster\n"),
    ],
)
def test_rows_34_to_37_the_id_of_a_submission(row: int, printed: str) -> None:
    assert names.submitted_id(printed) == "3969755"


@pytest.mark.parametrize("reason", ["ReqNodeNotAvail,_UnavailableNodes:n[1-3]", "(null)", "", "Nodes_required_for_job_are_DOWN,_DRAINED"])
def test_row_37_a_reason_is_any_text(reason: str) -> None:
    assert one("26.05.5", "Reason=None", f"Reason={reason}").state is JobState.RUNNING


@pytest.mark.parametrize("reason", ["JobHeldUser", "JobHeldAdmin", "Dependency"])
def test_row_37_a_held_job_waits_for_something_else(reason: str) -> None:
    assert states.job_state(["PENDING"], reason) is JobState.HELD


def test_rows_38_and_39_a_refused_query_is_no_empty_queue() -> None:
    with pytest.raises(SchedulerError):
        list(text.jobs("", MARK))
    with pytest.raises(SchedulerError):
        list(text.jobs("slurm_load_jobs error: Socket timed out on send/recv operation", MARK))


def test_row_40_one_query_a_kind() -> None:
    asked = [commands.JOBS, commands.NODES, commands.RESERVATIONS]
    assert [each[-1] for each in asked] == ["job", "node", "reservation"]


@pytest.mark.parametrize(
    "wrong", ["n1;reboot", "$(reboot)", "n1 n2", "n1\n", "[2001:db8::1]", "n[45-33]", "n[2-3,36-40-44]", "@all", "n1!n2", "n[1-999999999]"]
)
def test_row_41_only_names_are_names(wrong: str) -> None:
    with pytest.raises(SchedulerError):
        node_names(wrong)
    with pytest.raises(SchedulerError):
        commands.sbatch(PilotSpec(uuid="u", argv=("a",), folder="/f", node=wrong), 60.0)


@pytest.mark.parametrize(
    ("folded", "nodes"),
    [
        ("nodeA,nodeB[001,003],nodeC", ("nodeA", "nodeB001", "nodeB003", "nodeC")),
        ("rack[1-2]n[01-02]", ("rack1n01", "rack1n02", "rack2n01", "rack2n02")),
        ("sh-[2,11,13]-4", ("sh-2-4", "sh-11-4", "sh-13-4")),
        ("t2-medium-dy-t2medium-[1-2]", ("t2-medium-dy-t2medium-1", "t2-medium-dy-t2medium-2")),
        ("r14c[11-12],r02c[03-04]", ("r14c11", "r14c12", "r02c03", "r02c04")),
        ("logstash2,logstash03", ("logstash2", "logstash03")),
        ("x3212c0s13b1n0", ("x3212c0s13b1n0",)),
        ("(null)", ()),
        ("None assigned", ()),
        ("", ()),
    ],
)
def test_row_73_node_lists(folded: str, nodes: tuple[str, ...]) -> None:
    assert set(node_names(folded)) == set(nodes)


def test_a_node_of_unknown_base_is_left_alone_and_reported() -> None:
    assert harvest(node("MELTING")) is Harvest.STAY
    assert unknown_flags([node("MELTING")]) == {"MELTING"}


@pytest.mark.parametrize(("written", "number"), [("4", 4), ("3-5", 3), ("1.5K", 1536), ("2M", 2 * 1024**2)])
def test_counts(written: str, number: int) -> None:
    assert records.count(written) == number


@pytest.mark.parametrize("wrong", ["", "many", "inf", "nan", "9" * 400, "-1"])
def test_what_is_no_count_is_refused(wrong: str) -> None:
    with pytest.raises(records.UnreadableError):
        records.count(wrong)
