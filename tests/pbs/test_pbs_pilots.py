"""Pilots of the PBS scheduler on a PBS: submitted, seen, preempted by each method, run once, told apart from other jobs, deleted."""

from __future__ import annotations

import asyncio
import shutil
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from pbs_commands import Pbs, until
from pbs_fake import KILL_DELAY_SECONDS, Fake

from commensald.cluster import Job, JobState, Snapshot
from commensald.schedulers import PilotSpec, SchedulerError
from commensald.schedulers.pbs.records import UnreadableError
from commensald.schedulers.pbs.scheduler import PbsScheduler

POLITE = "echo here; trap 'echo told; exit 0' TERM; while :; do sleep 0.05; done"
DEAF = "echo here; trap '' TERM; while :; do sleep 0.05; done"


class Stage:
    """One scheduler, asked from a test's own thread; pilots write to ``folder``."""

    def __init__(self, pbs: Pbs, folder: Path, timeout_seconds: float = 20.0) -> None:
        found = shutil.which("qstat")
        assert found is not None
        self.pbs, self.folder = pbs, folder
        self.scheduler = PbsScheduler(queue=pbs.scavenger, path=str(Path(found).parent), timeout_seconds=timeout_seconds)

    def look(self) -> Snapshot:
        return asyncio.run(self.scheduler.snapshot())

    def pilot(self, script: str, node: str | None = None) -> str:
        """The pilot's uuid."""
        name = str(uuid.uuid4())
        self.look()
        spec = PilotSpec(uuid=name, argv=("/bin/sh", "-c", script), folder=str(self.folder), node=node, time_limit=600.0)
        asyncio.run(self.scheduler.submit(spec))
        return name

    def job(self, name: str) -> Job | None:
        shown = self.look().jobs
        return next((each for each in shown if each.comment == f"commensal:{name}"), None)

    def until(self, name: str, what: Callable[[Job | None], bool], words: str) -> Job | None:
        """The job as it is once ``what`` holds."""
        found: list[Job | None] = []

        def holds() -> bool:
            found.append(self.job(name))
            return what(found[-1])

        until(holds, words)
        return found[-1]

    def said(self, name: str) -> str:
        log = self.folder / f"{name}.log"
        return log.read_text() if log.exists() else ""

    def runs(self, script: str, node: str | None = None) -> tuple[str, Job]:
        """A pilot that has begun."""
        name = self.pilot(script, node)
        until(lambda: "here" in self.said(name), "the pilot to begin")
        job = self.job(name)
        assert job is not None
        return name, job

    def primary(self) -> str:
        """A job that needs every node."""
        table = self.pbs.nodes()
        cpus = min(node["resources_available"]["ncpus"] for node in table.values())
        options = ("-q", self.pbs.primary, "-l", f"select={len(table)}:ncpus={cpus}", "-l", "place=scatter", "-o", "/dev/null", "-j", "oe")
        return self.pbs.qsub("sleep 600", *options)

    def runs_primary(self, job: str) -> bool:
        return self.pbs.jobs()[job]["job_state"] == "R"


@pytest.fixture
def stage(pbs: Pbs, tmp_path: Path) -> Stage:
    return Stage(pbs, tmp_path)


def test_an_aimed_pilot_is_where_it_was_aimed_and_ends_when_deleted(stage: Stage) -> None:
    node = sorted(stage.pbs.nodes())[-1]
    name, job = stage.runs(POLITE, node)
    assert (job.state, job.nodes, job.partition, job.time_limit) == (JobState.RUNNING, (node,), stage.pbs.scavenger, 600.0)
    assert job.end is not None
    assert job.start is not None
    assert abs(job.start - time.time()) < 10
    assert job.end - job.start == 600.0
    busy = {each.name: each.cpus_used for each in stage.look().nodes}
    assert busy[node] == max(busy.values()) > 0
    asyncio.run(stage.scheduler.cancel([job.id]))
    stage.until(name, lambda found: found is None, "the pilot to be gone")
    asyncio.run(stage.scheduler.cancel([job.id]))  # it is gone: no error
    assert [stage.said(name).count(word) for word in ("here", "told")] == [1, 1]


def test_preempted_by_requeuing_it_leaves_at_once_and_does_not_run_again(stage: Stage) -> None:
    name, _ = stage.runs(POLITE)
    primary = stage.primary()
    assert until(lambda: stage.runs_primary(primary), "the primary job") < KILL_DELAY_SECONDS
    stage.pbs.run("qdel", primary)
    stage.until(name, lambda found: found is None, "its second life to be over")
    assert [stage.said(name).count(word) for word in ("here", "told")] == [1, 1]


def test_a_pilot_that_stays_is_seen_to_be_preempted(stage: Stage) -> None:
    name, _ = stage.runs(DEAF)
    stage.primary()
    job = stage.until(name, lambda found: found is not None and found.preempted_at is not None, "the preemption to show")
    assert job is not None
    assert job.state is JobState.RUNNING
    assert job.end == pytest.approx((job.preempted_at or 0.0) + KILL_DELAY_SECONDS)
    assert stage.look().facts.grace_seconds == KILL_DELAY_SECONDS


@pytest.mark.parametrize("order", ["S", "D"])
def test_a_pilot_that_is_suspended_or_deleted_is_soon_gone(stage: Stage, fake: Fake, order: str) -> None:
    fake.set("sched preempt_order", order)
    name, _ = stage.runs(POLITE)
    primary = stage.primary()
    until(lambda: stage.runs_primary(primary), "the primary job")
    stage.until(name, lambda found: found is None, "the pilot to be gone")


def test_a_standing_pilot_takes_a_node_and_knows_which(stage: Stage) -> None:
    name, job = stage.runs(f"echo on $COMMENSAL_NODE; {POLITE}")
    assert f"on {job.nodes[0]}\n" in stage.said(name)


def test_an_answer_that_is_cut_or_says_nothing_is_no_snapshot(stage: Stage, fake: Fake) -> None:
    stage.runs(POLITE)
    for fault in ({"cut": 300}, {"say": ""}):
        fake.spoil("qstat", **fault)
        with pytest.raises(UnreadableError):
            stage.look()
    fake.mend()
    assert len(stage.look().jobs) == 1


def test_a_server_that_is_away_is_no_snapshot_and_comes_back(stage: Stage, fake: Fake) -> None:
    stage.runs(POLITE)
    fake.away(away=True)
    try:
        with pytest.raises(SchedulerError, match="cannot connect to server"):
            until(lambda: bool(stage.look()) and False, "the server to go")
    finally:
        fake.away(away=False)
    until(lambda: bool(_answers(stage)), "the server to come back")
    assert len(stage.look().jobs) == 1


def _answers(stage: Stage) -> bool:
    try:
        return bool(stage.look())
    except SchedulerError:
        return False


def test_a_submission_that_got_no_answer_in_time_is_found_by_its_tag(pbs: Pbs, fake: Fake, tmp_path: Path) -> None:
    stage = Stage(pbs, tmp_path, timeout_seconds=3.0)
    fake.spoil("qsub", sleep=60)
    name = stage.pilot(POLITE)
    job = stage.job(name)
    assert job is not None
