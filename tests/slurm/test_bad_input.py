"""What users write into a live queue, read by an owner whose own environment is unusual: nothing crashes, nothing is misread."""

from __future__ import annotations

import asyncio
import calendar
import time
from collections.abc import Iterator

import pytest
from installation import Installation, until

from commensald.cluster import Job, JobState
from commensald.schedulers.slurm.scheduler import SlurmScheduler

FORGED = "x JobState=RUNNING NodeList=n1 Comment=commensal:forged"
LINES = "a\nJobId=99 JobName=y UserId=root(0) GroupId=root(0)"


@pytest.fixture
def strange(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The reader's environment."""
    for name, value in {"LANG": "de_DE", "LC_ALL": "de_DE", "SQUEUE_FORMAT": "%i", "SLURM_TIME_FORMAT": "relative"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def sbatch(where: Installation, *options: str) -> str:
    return where.slurm("sbatch", "--parsable", "-o/dev/null", "-p", "primary", "-N1", *options, "--wrap", "sleep 300").strip()


def read(where: Installation) -> dict[str, Job]:
    path = where.environment["PATH"].partition(":")[0]
    scheduler = SlurmScheduler(slurm_conf=where.environment["SLURM_CONF"], path=path, bindings=False)
    return {job.id: job for job in asyncio.run(scheduler.snapshot()).jobs if job.state is not JobState.ENDED}


def until_running(where: Installation, job: str) -> None:
    until(lambda: where.slurm("squeue", "-h", "-j", job, "-o", "%T").strip() == "RUNNING", "a job to run")


@pytest.mark.usefixtures("strange")
def test_names_are_names(where: Installation) -> None:
    forged = sbatch(where, "--exclusive", "-w", "n2", "-t5", "-J", FORGED)
    latin = where.slurm("sh", "-c", 'exec sbatch --parsable -o/dev/null -t5 -J "$(printf "d\\351d\\351")" --wrap "sleep 300"').strip()
    sbatch(where, "-t5", "-J", LINES)  # whose own id may be misread, and no more (schedulers/slurm/text.py)
    until_running(where, forged)
    found = read(where)
    assert len(found) == 3
    assert [found[job].name for job in (forged, latin)] == [FORGED, "d\N{REPLACEMENT CHARACTER}d\N{REPLACEMENT CHARACTER}"]
    assert {(job.owner, job.pilot(where.account.user)) for job in found.values()} == {(where.account.user, None)}
    assert (found[forged].state, found[forged].nodes) == (JobState.RUNNING, ("n2",))


@pytest.mark.usefixtures("strange")
def test_limits_are_limits_and_instants_are_instants(where: Installation) -> None:
    where.environment["TZ"] = "UTC0"
    try:
        days, endless = sbatch(where, "-t3-00:00"), sbatch(where, "-tUNLIMITED")
        twice = {f"2027-11-07T0{hour}:30:00": sbatch(where, "-t5", f"--begin=2027-11-07T0{hour}:30:00") for hour in (5, 6)}
    finally:
        del where.environment["TZ"]
    found = read(where)
    assert [found[job].time_limit for job in (days, endless)] == [3 * 86_400.0, None]
    for written, job in twice.items():  # both are half past one in New York
        assert found[job].eligible == calendar.timegm(time.strptime(written, "%Y-%m-%dT%H:%M:%S"))


@pytest.mark.usefixtures("strange")
def test_arrays_het_jobs_and_several_partitions(where: Installation) -> None:
    array = sbatch(where, "--exclusive", "-t5", "-a", "0-9%2")
    het = where.slurm("sbatch", "--parsable", "-o/dev/null", "-n1", "-H", "-t5", ":", "-n1", "-t5", "--wrap", "sleep 300").strip()
    both = sbatch(where, "-t5", "-H", "-p", "primary,scavenger")
    until(lambda: len(where.slurm("squeue", "-h", "-t", "RUNNING").splitlines()) == 2, "two tasks to run")
    found = read(where)
    running = [job for job in found.values() if job.state is JobState.RUNNING]
    waiting = [job for job in found if job.startswith(f"{array}_")]
    assert [len(job.nodes) for job in running] == [1, 1]
    assert all(job.id.isdecimal() for job in running)
    assert sorted(waiting) == [f"{array}_2", f"{array}_3"]  # as many as may run at once
    assert found[both].partition == "primary,scavenger"
    assert {found[het].state, found[both].state} == {JobState.HELD}
