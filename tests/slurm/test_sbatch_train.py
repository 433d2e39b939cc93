"""`scripts/sbatch-train` on a real Slurm: a ring without a daemon, preempted, queued again, cancelled."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from installation import EXAMPLE, GRACE_SECONDS, ROOT, Installation, until

STARTS_SECONDS = 60.0
PRIMARY_SECONDS = 2.0
"""From a primary job's submission to its start: the promise, and what Slurm itself takes."""


class Plain:
    """One training in one folder."""

    def __init__(self, where: Installation, steps: int) -> None:
        self.where, self.folder = where, where.folder / "trainings" / "plain"
        self.file = self.folder / "train.toml"
        where.account.run(["mkdir", str(self.folder)], {})
        text = f'[training]\nname = "plain"\nscript = "{EXAMPLE}"\nfolder = "."\nargs = ["--steps", "{steps}"]\nnodes = [1, 4]\n'
        where.account.run(["sh", "-c", 'printf "%s" "$1" > "$2"', "sh", text, str(self.file)], {})

    def submit(self, *options: str) -> str:
        environment = {
            **self.where.environment,
            "COMMENSAL_PYTHON": self.where.account.python,
            "COMMENSAL_GRACE_SECONDS": str(GRACE_SECONDS),
        }
        said = self.where.account.run([str(ROOT / "scripts" / "sbatch-train"), str(self.file), "--time=5", *options], environment)
        found = re.search(r"\d+", said)
        assert found is not None, said
        return found[0]

    def log(self) -> str:
        return "".join(path.read_text() for path in sorted(self.folder.glob("plain-*.log")))

    def until_members(self, count: int) -> None:
        until(lambda: any(len(ring.split(",")) == count for ring in re.findall(r"members=(\S+)", self.log())), f"{count} members", 60.0)

    def shown(self, job: str) -> str:
        return self.where.slurm("scontrol", "-o", "show", "job", job)


@pytest.fixture
def plain(where: Installation) -> Iterator[Plain]:
    plain = Plain(where, 10_000_000)
    yield plain
    print(plain.log())  # for the report of a failed test


def test_a_job_trains_to_its_end_on_all_its_nodes(where: Installation) -> None:
    short = Plain(where, 200)
    job = short.submit("--nodes=3")
    until(lambda: "JobState=COMPLETED" in short.shown(job), "the job to complete", 90.0)
    assert "finished: 200 steps" in short.log()
    assert "ExitCode=0:0" in short.shown(job)


def test_a_preempted_job_makes_room_saves_and_goes_on(plain: Plain) -> None:
    where = plain.where
    job = plain.submit("--nodes=4", "--partition=scavenger")
    plain.until_members(4)
    until(lambda: " measured " in plain.log(), "some steps", 60.0)
    mark = where.folder / "trainings" / "primary"
    where.slurm("sbatch", "-p", "primary", "-N4", "--exclusive", "-t1", "-o/dev/null", "--wrap", f"touch {mark}; sleep 2")
    until(mark.exists, "the primary job to start", PRIMARY_SECONDS + GRACE_SECONDS)
    until(lambda: "Restarts=1" in plain.shown(job) and "JobState=RUNNING" in plain.shown(job), "the job to be back", 90.0)
    until(lambda: re.search(r"generation=2\.\d+ .*closed=[1-9]", plain.log()) is not None, "a ring from the checkpoint", 60.0)
    where.slurm("scancel", job)
    until(lambda: "JobState=CANCELLED" in plain.shown(job), "the job to be cancelled")
    until(lambda: not where.slurm("squeue", "-h", "-j", job).strip(), "it to stay so", 15.0)


def test_the_jobs_of_an_array_are_one_ring_and_one_may_be_lost(plain: Plain) -> None:
    job = plain.submit("--array=0-2", "--nodes=1", "--partition=scavenger")
    plain.until_members(3)
    plain.where.slurm("scancel", "-s", "KILL", f"{job}_1")
    # Slurm ends the job by TERM and CONT first: an unhurried member leaves, one that is in the middle of a long step is lost.
    two = r"members=n\d,n\d,n\d closed(.|\n)*members=n\d,n\d closed="
    until(lambda: re.search(two, plain.log()) is not None, "a ring of the other two")
    until(lambda: re.search(two + r"(.|\n)* measured ", plain.log()) is not None, "the ring to go on", 60.0)


def test_the_first_job_of_an_array_comes_back_to_the_ring_that_stepped_on(plain: Plain) -> None:
    plain.submit("--array=0-2", "--nodes=1", "--partition=scavenger")
    plain.until_members(3)
    until(lambda: re.search(r"members=n\d,n\d,n\d(.|\n)* measured ", plain.log()) is not None, "the three to step", 60.0)
    first = next(line.split()[1] for line in plain.where.slurm("squeue", "-h", "-o", "%i %A").splitlines() if "_0 " in line)
    plain.where.slurm("scontrol", "requeue", first)
    until(lambda: re.search(r"generation=2\.\d+ members=n\d,n\d,n\d", plain.log()) is not None, "all three in one ring again", 90.0)
    after = re.findall(r"generation=2\.\d+ members=(\S+) closed=(\S+)", plain.log())
    assert [closed for _, closed in after] == ["None"] * len(after)  # nobody began again from disk


def test_a_bad_training_file_is_not_submitted(where: Installation) -> None:
    plain = Plain(where, 1)
    plain.file = Path("/no/such/train.toml")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        plain.submit()
    assert caught.value.returncode == 2
    assert caught.value.stderr == "error: /no/such/train.toml: cannot be read: No such file or directory\n"
    assert where.slurm("squeue", "-h").strip() == ""
