"""The scheduler against commands that answer whole, damaged, cut, late, wrongly or not at all: what a PBS does only when it is unwell."""

from __future__ import annotations

import asyncio
import os
import pwd
from pathlib import Path

import pytest
from pbs_captures import capture
from slurm_commands import command

from commensald.cluster import JobState, Node, NodeState
from commensald.schedulers import PilotSpec, SchedulerError
from commensald.schedulers.pbs import commands
from commensald.schedulers.pbs.clock import Given, ahead_seconds
from commensald.schedulers.pbs.records import UnreadableError
from commensald.schedulers.pbs.scheduler import PbsScheduler
from commensald.schedulers.runner import CommandTimeoutError

FILES = {
    "jobs.json": "qstat_tf2.json",
    "jobs.txt": "qstat_f.txt",
    "queues.json": "qstat_Q2.json",
    "server.json": "qstat_B.json",
    "nodes.json": "pbsnodes_a2.json",
    "resv.txt": "pbs_rstat_F2.txt",
    "sched.txt": "list_sched.txt",
}
QSTAT = """#!/bin/sh
echo "qstat $@" >> asked
case "$*" in *-Q*) cat queues.json;; *-B*) cat server.json;; *json*) cat jobs.json;; *) cat jobs.txt;; esac
"""
SPEC = PilotSpec(uuid="u1", argv=("python", "-m", "commensal.pilot"), folder="/shared/pilots", node="pbs-m1", time_limit=3599.0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, captured in FILES.items():
        (tmp_path / name).write_text(capture(captured))
    command(tmp_path, "qstat", QSTAT)
    for name, file in (("pbsnodes", "nodes.json"), ("pbs_rstat", "resv.txt"), ("qmgr", "sched.txt")):
        command(tmp_path, name, f'#!/bin/sh\necho "{name} $@" >> asked\ncat {file}\n')
    return tmp_path


def pbs(folder: Path, timeout_seconds: float = 10.0) -> PbsScheduler:
    return PbsScheduler(queue="scavq", path=str(folder), timeout_seconds=timeout_seconds)


def asked(folder: Path) -> list[str]:
    return (folder / "asked").read_text().splitlines()


def test_a_snapshot_is_three_queries_and_the_rest_is_read_rarely(folder: Path) -> None:
    async def twice() -> None:
        scheduler = pbs(folder)
        first, second = await scheduler.snapshot(), await scheduler.snapshot()
        assert (first.nodes, first.jobs, first.reservations) == (second.nodes, second.jobs, second.reservations)
        assert (len(second.nodes), len(second.jobs), len(second.reservations)) == (2, 14, 1)
        assert (second.facts.version, second.facts.grace_seconds) == ("23.06.06", 15.0)
        assert scheduler.rest_seconds() == 0.0

    asyncio.run(twice())
    assert sorted(asked(folder)) == sorted(
        [
            "qmgr -c list sched",
            "qstat -Q -f -F json",
            "qstat -B -f -F json",
            *["qstat -f -t -F json", "pbsnodes -a -v -F json", "pbs_rstat -F"] * 2,
        ]
    )


def test_damaged_jobs_are_repaired_or_asked_for_as_text(folder: Path) -> None:
    shown = folder / "jobs.json"
    whole = capture("qstat_f.json")
    shown.write_text(
        whole.replace('"Job_Owner":\t"alice@pbs-s"', '"Job_Owner":\t"alice', 1).replace('"PBS_O_LANG":\t"C.UTF-8"', '"a":\t005', 1)
    )
    seen = asyncio.run(pbs(folder).snapshot())
    assert (seen.facts.extra["jobs_repaired"], seen.facts.extra["jobs_unreadable"]) == ("2", "0")
    assert {each.id: each.owner for each in seen.jobs}["3.pbs-s"] == "alice"
    (folder / "jobs.txt").write_text((folder / "jobs.txt").read_text().replace("    Job_Owner = alice@pbs-s\n", "", 1))
    seen = asyncio.run(pbs(folder).snapshot())
    assert (seen.facts.extra["jobs_repaired"], seen.facts.extra["jobs_unreadable"]) == ("1", "1")
    assert {each.id: each.state for each in seen.jobs}["3.pbs-s"] is JobState.UNKNOWN
    assert len(seen.jobs) == 9


def test_a_cut_answer_is_asked_for_again_as_text(folder: Path) -> None:
    (folder / "jobs.json").write_text(capture("qstat_f.json")[:7000])
    assert len(asyncio.run(pbs(folder).snapshot()).jobs) == 9
    (folder / "jobs.txt").write_text(capture("qstat_f.txt")[:7000])
    with pytest.raises(UnreadableError):
        asyncio.run(pbs(folder).snapshot())


def test_no_answer_is_not_an_empty_queue(folder: Path) -> None:
    (folder / "jobs.json").write_text('{\n\t"timestamp":\t1796000836,\n\t"pbs_version":\t"23.06.06",\n\t"pbs_server":\t"pbs-s"\n}\n')
    assert asyncio.run(pbs(folder).snapshot()).jobs == ()
    for name in ("jobs.json", "jobs.txt"):
        (folder / name).write_text("")
    with pytest.raises(UnreadableError):
        asyncio.run(pbs(folder).snapshot())


@pytest.mark.parametrize("name", ["nodes.json", "resv.txt", "queues.json", "server.json"])
def test_what_else_is_cut_gives_no_snapshot(folder: Path, name: str) -> None:
    whole = (folder / name).read_text()
    (folder / name).write_text(whole[: len(whole) // 2].rstrip("\n"))
    with pytest.raises(UnreadableError):
        asyncio.run(pbs(folder).snapshot())


def test_a_server_that_cannot_be_reached_is_said_in_its_own_words_and_left_alone_for_longer(folder: Path) -> None:
    command(folder, "qstat", "#!/bin/sh\necho 'qstat: cannot connect to server pbs-s (errno=15010)' >&2\nexit 255\n")

    async def thrice() -> None:
        scheduler, rests = pbs(folder), []
        for _ in range(3):
            with pytest.raises(SchedulerError, match="cannot connect to server pbs-s"):
                await scheduler.snapshot()
            rests.append(scheduler.rest_seconds())
        assert rests[0] < rests[1] < rests[2]

    asyncio.run(thrice())


def test_without_qmgr_pbs_defaults_hold(folder: Path) -> None:
    command(folder, "qmgr", "#!/bin/sh\nexit 1\n")
    facts = asyncio.run(pbs(folder).snapshot()).facts
    assert (facts.extra["preempt_order"], facts.grace_seconds) == ("SCR", 0.0)


def test_a_late_command_gives_no_snapshot(folder: Path) -> None:
    command(folder, "pbs_rstat", "#!/bin/sh\nsleep 60\n")
    with pytest.raises(CommandTimeoutError):
        asyncio.run(pbs(folder, 0.5).snapshot())


def test_commands_get_a_clean_environment_in_utc(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PBS_SERVER", "srv")
    monkeypatch.setenv("PBS_DPREFIX", "#X")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    given = commands.environment("/x", "/etc/other.conf", "/home/us")
    assert given == {
        "PATH": f"/x:{commands.PATH}",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC0",
        "HOME": "/home/us",
        "PBS_SERVER": "srv",
        "PBS_CONF_FILE": "/etc/other.conf",
    }


def qsub(folder: Path, printed: str) -> None:
    command(folder, "qsub", f'#!/bin/sh\nprintf "%s\\n" "$@" > argv\ncat > script\nprintf "{printed}\\n"\n')


@pytest.mark.parametrize("printed", ["4711.pbs-s", "hook: charged to lab\\n4711.pbs-s", "4711.pbs-s\\nhave a nice day"])
def test_the_id_of_a_pilot(folder: Path, printed: str) -> None:
    qsub(folder, printed)

    async def submitted() -> str:
        scheduler = pbs(folder)
        await scheduler.snapshot()
        return await scheduler.submit(SPEC)

    assert asyncio.run(submitted()) == "4711.pbs-s"
    argv = (folder / "argv").read_text().splitlines()
    assert {"scavq", "select=1:host=pbs-m1:ncpus=4:mem=24105mb", "COMMENSAL_PILOT=u1"} <= set(argv)
    script = (folder / "script").read_text()
    assert "exec python -m commensal.pilot" in script
    assert "export COMMENSAL_NODE=pbs-m1" in script


def test_the_whole_command_line_of_a_pilot() -> None:
    spec = PilotSpec(uuid="u1", argv=("python",), folder="/pilots", node="n1", partition="scavq", qos="idle", account="lab")
    assert commands.qsub(spec, 3599.9, commands.Shape(cpus=64, gpus=4, memory_mib=5000), 60.0) == [
        *("qsub", "-N", "commensal", "-S", "/bin/sh", "-r", "y", "-c", "n", "-m", "n", "-j", "oe", "-k", "oed", "-o", "/pilots/u1.log"),
        *(
            "-v",
            "COMMENSAL_PILOT=u1",
            "-W",
            "umask=077",
            "-l",
            "select=1:host=n1:ncpus=64:ngpus=4:mem=5000mb",
            "-l",
            "place=scatter:exclhost",
        ),
        *("-l", "min_walltime=00:01:00,max_walltime=00:59:59", "-q", "scavq", "-A", "lab"),
    ]


@pytest.mark.parametrize(
    ("seconds", "least", "limit"),
    [
        (59.0, 60.0, "walltime=00:00:59"),
        (90_061.5, None, "walltime=25:01:01"),
        (120.0, 60.0, "min_walltime=00:01:00,max_walltime=00:02:00"),
    ],
)
def test_a_pilot_is_shrunk_where_the_site_allows_it(seconds: float, least: float | None, limit: str) -> None:
    assert limit in commands.qsub(SPEC, seconds, commands.Shape(), least)


@pytest.mark.parametrize(
    ("ctime", "took", "ahead"), [(100.0, 0.2, 0.0), (160.0, 0.2, 60.4), (40.0, 0.2, -59.6), (160.0, 9.0, None), (0.0, 0.2, None)]
)
def test_the_servers_clock_is_told_by_a_job_of_ours(ctime: float, took: float, ahead: float | None) -> None:
    found = ahead_seconds(Given(job="1.srv", before=100.0, after=100.0 + took), {"ctime": f"{ctime:.0f}"})
    assert found == (ahead if ahead is None else pytest.approx(ahead))
    assert ahead_seconds(Given(job="1.srv", before=1.0, after=1.0), {"ctime": "yesterday"}) is None


def test_a_snapshot_is_by_the_servers_clock(folder: Path) -> None:
    qsub(folder, "0.pbs-s")

    async def taken() -> float:
        scheduler = pbs(folder)
        await scheduler.submit(SPEC)
        return (await scheduler.snapshot()).taken

    assert asyncio.run(taken()) == pytest.approx(1796000712, abs=30)  # when the server took job 0 of the capture


def test_a_standing_pilot_takes_a_host_of_the_usual_shape(folder: Path) -> None:
    qsub(folder, "4711.pbs-s")

    async def submitted() -> None:
        scheduler = pbs(folder)
        await scheduler.snapshot()
        await scheduler.submit(PilotSpec(uuid="u1", argv=("true",), folder="/pilots"))

    asyncio.run(submitted())
    argv = (folder / "argv").read_text().splitlines()
    assert {"select=1:ncpus=4:mem=24105mb", "min_walltime=00:01:00,max_walltime=168:00:00"} <= set(argv)
    assert "$PBS_NODEFILE" in (folder / "script").read_text()


def test_the_usual_shape_fits_all_hosts_that_have_it() -> None:
    sizes = ((4, 0, 900), (64, 4, 5000), (64, 4, 4990), (64, 4, 5000), (64, 0, 100))
    nodes = [
        Node(name=f"n{number}", state=NodeState.IDLE, cpus=cpus, gpus=gpus, memory_mib=memory)
        for number, (cpus, gpus, memory) in enumerate(sizes)
    ]
    assert commands.shape(nodes, None) == commands.Shape(cpus=64, gpus=4, memory_mib=4990)
    assert commands.shape(nodes, "n0") == commands.Shape(cpus=4, memory_mib=900)
    assert commands.shape(nodes, "elsewhere") == commands.shape([], None) == commands.Shape()
    assert commands.Shape().chunk() == "ncpus=1"


def test_a_pilot_whose_submission_got_no_answer_is_looked_for_by_its_tag(folder: Path) -> None:
    command(folder, "qsub", "#!/bin/sh\nsleep 60\n")
    shown = capture("qstat_f.json").replace('"PBS_O_SYSTEM":\t"Linux"', '"COMMENSAL_PILOT":\t"u1"', 1)
    (folder / "jobs.json").write_text(shown)
    assert asyncio.run(pbs(folder, 0.5).submit(SPEC)) == "0.pbs-s"
    assert "qstat -f -x -F json" in asked(folder)
    (folder / "jobs.json").write_text(capture("qstat_f.json"))
    with pytest.raises(CommandTimeoutError):
        asyncio.run(pbs(folder, 0.5).submit(SPEC))


def test_no_job_id_is_an_error_that_carries_what_was_printed(folder: Path) -> None:
    qsub(folder, "queued, thank you")
    with pytest.raises(SchedulerError, match="queued, thank you"):
        asyncio.run(pbs(folder).submit(SPEC))


@pytest.mark.parametrize("words", ["Unknown Job Id 1.srv", "Job has finished 1.srv", "Request invalid for state of job 1.srv"])
def test_ids_that_are_gone_are_no_error_but_others_are(folder: Path, words: str) -> None:
    command(folder, "qdel", f"#!/bin/sh\necho 'qdel: {words}' >&2\nexit 153\n")
    asyncio.run(pbs(folder).cancel(["1.srv"]))
    command(folder, "qdel", f"#!/bin/sh\necho 'qdel: {words}' >&2\necho 'qdel: Unauthorized Request 2.srv' >&2\nexit 159\n")
    with pytest.raises(SchedulerError, match="Unauthorized"):
        asyncio.run(pbs(folder).cancel(["1.srv", "2.srv"]))


def test_nothing_that_is_not_an_id_reaches_qdel(folder: Path) -> None:
    command(folder, "qdel", "#!/bin/sh\ntouch called\n")
    for wrong in ("1.srv;reboot", "-Wforce", "", "1 2", "x", "all"):
        with pytest.raises(SchedulerError):
            asyncio.run(pbs(folder).cancel([wrong]))
    assert not (folder / "called").exists()


def test_spent_pilots_are_deleted_and_a_refusal_costs_no_snapshot(folder: Path) -> None:
    us = pwd.getpwuid(os.getuid()).pw_name
    shown = capture("qstat_f.json").replace('"PBS_O_SYSTEM":\t"Linux"', '"COMMENSAL_PILOT":\t"u1"', 1)
    (folder / "jobs.json").write_text(shown.replace("scav@pbs-s", f"{us}@pbs-s").replace('"substate":\t60', '"substate":\t42'))
    command(folder, "qdel", '#!/bin/sh\necho "$@" >> deleted\necho "qdel: Unauthorized Request" >&2\nexit 159\n')
    seen = asyncio.run(pbs(folder).snapshot())
    assert (folder / "deleted").read_text() == "0.pbs-s\n"  # run_count is 2
    assert len(seen.jobs) == 9
