"""The scheduler against commands that answer whole, cut, late, wrongly or not at all."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from slurm_captures import MARK, capture, marked
from slurm_commands import VERSION, command, folder_of_commands

from commensald.harvest import Harvest, harvest
from commensald.schedulers import PilotSpec, SchedulerError
from commensald.schedulers.runner import CommandTimeoutError, Runner
from commensald.schedulers.slurm import commands
from commensald.schedulers.slurm.records import UnreadableError
from commensald.schedulers.slurm.scheduler import SlurmScheduler

FILES = [f"scontrol_{name}.txt" for name in ("config", "job_o", "node_o", "part_o", "res_o")]
SPEC = PilotSpec(uuid="u1", argv=("python", "-m", "commensal.pilot"), folder="/shared/pilots", node="n1", time_limit=3599.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder_of_commands(tmp_path, MARK, {name: marked(capture(VERSION, name)) for name in FILES})
    return tmp_path


def slurm(folder: Path, timeout_seconds: float = 10.0) -> SlurmScheduler:
    return SlurmScheduler(partition="scavenger", path=str(folder), timeout_seconds=timeout_seconds, bindings=False)


def change(folder: Path, name: str, old: str, new: str) -> None:
    path = folder / name
    path.write_text(path.read_text().replace(old, new))


def test_a_snapshot_is_three_queries_and_the_rest_is_read_rarely(folder: Path) -> None:
    async def twice() -> None:
        scheduler = slurm(folder)
        first, second = await scheduler.snapshot(), await scheduler.snapshot()
        assert (first.nodes, first.jobs, first.reservations) == (second.nodes, second.jobs, second.reservations)
        assert len(second.nodes) == 4
        assert second.facts.grace_seconds == 30.0
        assert second.facts.extra["calls_scontrol"] == "8"
        assert abs(float(second.facts.extra["clock_ahead_seconds"])) > 1000  # the capture is of another day
        assert second.taken == pytest.approx(1796000314, abs=30)

    asyncio.run(twice())
    asked = (folder / "asked").read_text().splitlines()
    assert len(asked) == 9
    assert sum(line.endswith("job") for line in asked) == 2
    assert sum(line.endswith("partition") or line.endswith("config") or line == "sdiag" for line in asked) == 3


def test_no_pilot_goes_to_a_node_outside_its_partition(folder: Path) -> None:
    change(folder, "scontrol_node_o.txt", ",scavenger", ",elsewhere")
    seen = asyncio.run(slurm(folder).snapshot())
    assert all("OTHER_PARTITION" in node.flags and harvest(node) is not Harvest.START for node in seen.nodes)


@pytest.mark.parametrize("name", ["scontrol_job_o.txt", "scontrol_node_o.txt", "scontrol_res_o.txt", "scontrol_config.txt"])
def test_a_truncated_answer_gives_no_snapshot(folder: Path, name: str) -> None:
    whole = (folder / name).read_text()
    (folder / name).write_text(whole[: len(whole) // 2].rstrip("\n"))
    with pytest.raises(UnreadableError):
        asyncio.run(slurm(folder).snapshot())


def test_an_empty_queue_is_not_an_empty_answer(folder: Path) -> None:
    (folder / "scontrol_job_o.txt").write_text("No jobs in the system\n")
    assert asyncio.run(slurm(folder).snapshot()).jobs == ()
    (folder / "scontrol_job_o.txt").write_text("")
    with pytest.raises(UnreadableError):
        asyncio.run(slurm(folder).snapshot())


def test_a_controller_that_cannot_be_reached_is_said_in_its_own_words_and_left_alone_for_longer(folder: Path) -> None:
    words = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
    command(folder, "scontrol", f'#!/bin/sh\necho "{words}" >&2\nexit 1\n')

    async def thrice() -> None:
        scheduler = slurm(folder)
        rests = []
        for _ in range(3):
            with pytest.raises(SchedulerError, match="Unable to contact slurm controller"):
                await scheduler.snapshot()
            rests.append(scheduler.rest_seconds())
        assert rests[0] < rests[1] < rests[2]
        assert 3 < rests[0] < 7

    asyncio.run(thrice())


def test_a_command_that_hangs_is_ended_with_all_it_started(folder: Path) -> None:
    command(folder, "scontrol", f'#!/bin/sh\nsleep 77.5 & echo $! > "{folder}/pid"\nwait\n')
    began = time.monotonic()
    with pytest.raises(CommandTimeoutError):
        asyncio.run(slurm(folder, 0.5).snapshot())
    assert time.monotonic() - began < 5
    pid = (folder / "pid").read_text().strip()
    while _runs(pid):
        assert time.monotonic() - began < 10
        time.sleep(0.01)


def _runs(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_missing_command_is_named() -> None:
    with pytest.raises(SchedulerError, match="no-such-command: cannot be started"):
        asyncio.run(Runner(5.0).run(["no-such-command"], commands.environment(None, None)))


def test_a_controller_without_sdiag_for_us_is_read_all_the_same(folder: Path) -> None:
    command(folder, "sdiag", "#!/bin/sh\necho 'slurm_get_statistics: Access/permission denied' >&2\nexit 1\n")
    seen = asyncio.run(slurm(folder).snapshot())
    assert "backfill_mean_seconds" not in seen.facts.extra


@pytest.mark.parametrize(
    "printed",
    ["4711", "4711;cluster", "sbatch: INFO: Note that 128 GB per node\\n4711", "Submitted batch job 4711 on cluster nautilus"],
)
def test_the_id_of_a_pilot(folder: Path, printed: str) -> None:
    command(folder, "sbatch", f'#!/bin/sh\nprintf "%s\\n" "$@" > "{folder}/argv"\ncat > "{folder}/script"\nprintf "{printed}\\n"\n')

    async def submitted() -> str:
        scheduler = slurm(folder)
        await scheduler.snapshot()
        return await scheduler.submit(SPEC)

    assert asyncio.run(submitted()) == "4711"
    argv = (folder / "argv").read_text().splitlines()
    assert {"--time=59", "--comment=commensal:u1", "--partition=scavenger", "--nodelist=n1", "--no-requeue", "--signal=USR1@60"} <= set(
        argv
    )
    assert not any(word.startswith("-J") or word == "--wrap" for word in argv)
    assert "exec srun" in (folder / "script").read_text()


def test_the_whole_command_line_of_a_pilot() -> None:
    spec = PilotSpec(uuid="u1", argv=("python",), folder="/pilots/100%", node="n1", partition="scavenger", qos="idle", account="lab")
    assert commands.sbatch(spec, 3599.0) == [
        *("sbatch", "--parsable", "--job-name=commensal", "--comment=commensal:u1", "--nodes=1", "--ntasks=1", "--exclusive", "--mem=0"),
        *("--time=59", "--signal=USR1@60", "--open-mode=append", "--no-requeue", "--export=ALL", "--propagate=NONE"),
        *("--chdir=/pilots/100%", "--output=/pilots/100%%/u1.log", "--nodelist=n1"),
        *("--partition=scavenger", "--qos=idle", "--account=lab"),
    ]


def test_a_pilot_whose_submission_got_no_answer_is_looked_for_by_its_tag(folder: Path) -> None:
    command(folder, "sbatch", "#!/bin/sh\nsleep 60\n")
    command(folder, "squeue", f'#!/bin/sh\necho "$@" > "{folder}/squeue"\necho "12|commensal:other"\necho "4712|commensal:u1"\n')
    assert asyncio.run(slurm(folder, 0.5).submit(SPEC)) == "4712"
    command(folder, "squeue", "#!/bin/sh\n")
    with pytest.raises(CommandTimeoutError):
        asyncio.run(slurm(folder, 0.5).submit(SPEC))


def test_no_job_id_is_an_error_that_carries_what_was_printed(folder: Path) -> None:
    command(folder, "sbatch", "#!/bin/sh\necho 'queued, thank you'\n")
    with pytest.raises(SchedulerError, match="queued, thank you"):
        asyncio.run(slurm(folder).submit(SPEC))


def test_ids_that_are_gone_are_no_error_but_others_are(folder: Path) -> None:
    command(folder, "scancel", "#!/bin/sh\necho 'scancel: error: Kill job error on job id 4711: Invalid job id specified' >&2\nexit 1\n")
    asyncio.run(slurm(folder).cancel(["4711"]))
    command(folder, "scancel", "#!/bin/sh\necho 'scancel: error: Kill job error on job id 4711: Access/permission denied' >&2\nexit 1\n")
    with pytest.raises(SchedulerError, match="permission denied"):
        asyncio.run(slurm(folder).cancel(["4711"]))


def test_nothing_that_is_not_an_id_reaches_scancel(folder: Path) -> None:
    command(folder, "scancel", f'#!/bin/sh\ntouch "{folder}/called"\n')
    for wrong in ("4711;reboot", "--user=root", "", "1 2", "x"):
        with pytest.raises(SchedulerError):
            asyncio.run(slurm(folder).cancel([wrong]))
    assert not (folder / "called").exists()


def test_an_unknown_state_is_a_job_that_is_present(folder: Path) -> None:
    change(folder, "scontrol_job_o.txt", "JobState=RUNNING", "JobState=DREAMING")
    seen = asyncio.run(slurm(folder).snapshot())
    assert {each.id for each in seen.jobs if each.state == "UNKNOWN" and each.nodes} >= {"29"}


@pytest.mark.parametrize(("qos", "grace"), [("scav", 20.0), ("normal", 0.0), (None, 0.0)])
def test_where_qualities_of_service_preempt_the_grace_is_theirs(folder: Path, qos: str | None, grace: float) -> None:
    change(folder, "scontrol_config.txt", "preempt/partition_prio", "preempt/qos")
    command(folder, "sacctmgr", "#!/bin/sh\nprintf 'normal|00:00:00\\nscav|00:00:20\\nhigh|00:00:00\\n'\n")
    scheduler = SlurmScheduler(partition="scavenger", qos=qos, path=str(folder), bindings=False)
    assert asyncio.run(scheduler.snapshot()).facts.grace_seconds == grace
