"""What a user writes cannot pass for what Slurm writes: names, commands and comments full of Slurm's own words, beside honest jobs."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from commensald.cluster import Job, JobState
from commensald.schedulers.slurm import text
from commensald.schedulers.slurm.jobs import jobs

MARK = "~8d1f03a9c2b4"
US, EVE = "us", "eve"
TAG = "commensal:11111111-2222-3333-4444-555555555555"

LINE = (
    "JobId={id} JobName={name} UserId={owner}(1000) GroupId=domain users(100) MCS_label=N/A Priority=1 Nice=0 Account=a QOS=normal{wckey} "
    "JobState=RUNNING Reason=None Dependency=(null) Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0 RunTime=00:00:15 "
    "TimeLimit=00:20:00 TimeMin=N/A SubmitTime=1796000256{mark} EligibleTime=1796000256{mark} AccrueTime=1796000256{mark} "
    "StartTime=1796000256{mark} EndTime=1796001456{mark} Deadline=N/A SuspendTime=None SecsPreSuspend=0 LastSchedEval=1796000256{mark} "
    "Scheduler=Main Partition=primary AllocNode:Sid=login:1 ReqNodeList=(null) ExcNodeList=(null) NodeList={node} BatchHost={node} "
    "NumNodes=1 NumCPUs=2 NumTasks=2 CPUs/Task=1 ReqB:S:C:T=0:0:*:* ReqTRES=cpu=2 AllocTRES=cpu=2 Socks/Node=* "
    "NtasksPerN:B:S:C=0:0:*:* CoreSpec=* MinCPUsNode=1 MinMemoryNode=1000M MinTmpDiskNode=0 Features=(null) DelayBoot=00:00:00 "
    "OverSubscribe=NO Contiguous=0 Licenses=(null) Network={network} Command={command} WorkDir={folder} Comment={comment}  "
    "StdErr=/dev/null StdIn=/dev/null StdOut=/dev/null\n"
)


def line(number: int, owner: str, node: str, **free: str) -> str:
    written = {"name": "x", "network": "(null)", "command": "a.sh", "folder": "/", "comment": "", "wckey": "", "mark": MARK} | free
    return LINE.format(id=number, owner=owner, node=node, **written)


WORDS = sorted({*text.ORDER, "JobId", "JobName", "UserId", "GroupId", "MCS_label", "Nice", "QOS", "WCKey", "Comment", "WorkDir", "StdErr"})
VALUES = ["1", "9", US + "(1000)", "RUNNING", "n1", TAG, "1796000256", "1796000256~000000000000", "(null)", ""]
FRAGMENT = st.one_of(
    st.builds("{}={}".format, st.sampled_from(WORDS), st.sampled_from(VALUES)),
    st.just(line(9, US, "n1", comment=TAG, mark="").removesuffix("\n")),
    st.just(line(9, US, "n1", comment=TAG, mark="~000000000000")),
    st.text(max_size=8),
)
FREE = st.lists(st.tuples(FRAGMENT, st.sampled_from([" ", "\n", "", "\r", "\u2028"])), max_size=8).map(
    lambda parts: "".join(word + space for word, space in parts)
)
HONEST = (line(7, US, "n7", name="commensal", comment=TAG), line(8, US, "n8", name="my own work", comment="nothing"))


def read(*lines: str, workload_keys: bool = False) -> list[Job]:
    return list(jobs(text.jobs("".join(lines), MARK, workload_keys=workload_keys)))


OURS = [("7", "commensal", ("n7",), TAG), ("8", "my own work", ("n8",), "nothing")]


def ours(found: list[Job]) -> list[tuple[str, str, tuple[str, ...], str]]:
    return [(each.id, each.name, each.nodes, each.comment) for each in found if each.owner == US]


@settings(deadline=None, max_examples=300)
@given(FREE, FREE, FREE, FREE, FREE)
def test_nobody_forges_a_job_of_ours(name: str, network: str, command: str, folder: str, comment: str) -> None:
    forged = line(6, EVE, "n6", name=name, network=network, command=command, folder=folder, comment=comment)
    for lines in ((forged, *HONEST), (HONEST[0], forged, HONEST[1]), (*HONEST, forged)):
        found = read(*lines)
        assert len(found) == 3
        assert ours(found) == OURS


@settings(deadline=None, max_examples=300)
@given(FREE, FREE, FREE)
def test_nobody_forges_a_job_of_ours_where_workload_keys_are_tracked(name: str, comment: str, wckey: str) -> None:
    honest = [each.replace(" JobState=", " WCKey=* JobState=") for each in HONEST]
    forged = line(6, EVE, "n6", name=name, comment=comment, wckey=" WCKey=" + wckey)
    for lines in ((forged, *honest), (honest[0], forged, honest[1]), (*honest, forged)):
        found = ours(read(*lines, workload_keys=True))
        assert set(found) <= set(OURS)
        assert found == OURS or "JobId=" in comment


@settings(deadline=None, max_examples=400)
@given(FREE.filter(lambda name: "\nJobId=" not in name))
@example("x JobState=RUNNING NodeList=n1 Comment=commensal:forged")
@example(line(9, US, "n1", mark="").removesuffix("\n"))
@example(" UserId=us(1000) GroupId=a(1) MCS_label=N/A Priority=9 Nice=0 Account=a QOS=q JobState=PENDING")
def test_a_name_changes_nothing_but_the_name(name: str) -> None:
    found, plain = read(line(6, EVE, "n6", name=name))[0], read(line(6, EVE, "n6"))[0]
    assert (found.id, found.state, found.nodes, found.start, found.end, found.comment) == (
        plain.id,
        plain.state,
        plain.nodes,
        plain.start,
        plain.end,
        plain.comment,
    )
    assert (found.owner, found.name) == (EVE, name)


@settings(deadline=None, max_examples=200)
@given(FREE)
def test_a_comment_is_read_to_the_end_of_its_line(comment: str) -> None:
    found = read(line(6, EVE, "n6", comment=comment), HONEST[0])
    assert comment.startswith(found[0].comment) or found[0].comment in comment
    assert found[1].comment == TAG


def test_a_submission_host_that_forges_nodes_makes_the_job_unknown() -> None:
    found = read(line(6, EVE, "n6").replace("Sid=login:1", "Sid=login NodeList=n1 NumNodes=1"))
    assert [(each.id, each.owner, each.state, each.nodes) for each in found] == [("6", EVE, JobState.UNKNOWN, ())]


def test_without_the_mark_nothing_is_read() -> None:
    forged = line(6, EVE, "n6", name="x\n" + line(9, US, "n1", comment=TAG, mark="~000000000000").removesuffix("\n"))
    assert [each.owner for each in read(forged)] == [EVE]
