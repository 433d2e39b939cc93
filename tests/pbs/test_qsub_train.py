"""`scripts/qsub-train` under PBS: a ring without a daemon, preempted, started again, its successor, deleted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pbs_commands import Pbs, until
from pbs_fake import KILL_DELAY_SECONDS

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "worker" / "commensal" / "examples" / "digits_mlp.py"


class Plain:
    """One training in one folder."""

    def __init__(self, pbs: Pbs, folder: Path, steps: int) -> None:
        self.pbs, self.folder = pbs, folder
        self.file = folder / "train.toml"
        text = f'[training]\nname = "plain"\nscript = "{EXAMPLE}"\nfolder = "."\nargs = ["--steps", "{steps}"]\nnodes = [1, 4]\n'
        self.file.write_text(text)

    def submit(self, *options: str, walltime: str = "walltime=5:00") -> str:
        """The id of the job."""
        ours = {
            "COMMENSAL_PYTHON": sys.executable,
            "COMMENSAL_GRACE_SECONDS": str(KILL_DELAY_SECONDS),
            "COMMENSAL_DAEMON_BIND": "127.0.0.1",
        }
        command = [str(ROOT / "scripts" / "qsub-train"), str(self.file), "-l", walltime, *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env={**os.environ, **ours})
        return done.stdout.strip()

    def log(self) -> str:
        """Of all its jobs."""
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.OU"), key=lambda path: path.stat().st_ctime))

    def until_members(self, count: int) -> None:
        """Until a ring of so many has formed."""
        until(lambda: any(len(ring.split(",")) == count for ring in re.findall(r"members=(\S+)", self.log())), f"{count} members", 60.0)


@pytest.fixture
def plain(pbs: Pbs, tmp_path: Path) -> Iterator[Plain]:
    plain = Plain(pbs, tmp_path, 10_000_000)
    yield plain
    print(plain.log())  # for the report of a failed test


def test_a_job_trains_to_its_end_on_all_its_nodes(pbs: Pbs, tmp_path: Path) -> None:
    short = Plain(pbs, tmp_path, 200)
    job = short.submit("-l", "select=2:ncpus=4", "-q", pbs.scavenger)
    until(lambda: job not in pbs.jobs(), "the job to complete", 90.0)
    assert "finished: 200 steps" in short.log()
    assert pbs.past(job)["Exit_status"] == 0


def test_a_preempted_job_makes_room_saves_and_goes_on(plain: Plain) -> None:
    pbs, mark = plain.pbs, plain.folder / "mark"
    job = plain.submit("-l", "select=2:ncpus=4", "-q", pbs.scavenger)
    plain.until_members(2)
    until(lambda: " measured " in plain.log(), "some steps", 60.0)
    prim = pbs.qsub(f"touch {mark}; sleep 2", "-q", pbs.primary, "-l", "select=4:ncpus=4", "-o", "/dev/null", "-j", "oe")
    until(mark.exists, "the primary job to start", KILL_DELAY_SECONDS)
    until(lambda: pbs.jobs().get(job, {}).get("run_count") == 2, "the job to be back", 60.0)
    until(lambda: re.search(r"generation=2\.\d+ .*closed=[1-9]", plain.log()) is not None, "a ring from the checkpoint", 60.0)
    assert prim not in pbs.jobs()
    pbs.run("qdel", job)
    until(lambda: not pbs.jobs(), "the job to be gone, and to stay so")


def test_a_job_whose_time_is_up_submits_its_successor(plain: Plain) -> None:
    first = plain.submit("-l", "select=2:ncpus=4", "-q", plain.pbs.scavenger, walltime="walltime=60")
    plain.until_members(2)
    until(lambda: first not in plain.pbs.jobs(), "its time to be up", 60.0)
    (second,) = plain.pbs.jobs()
    assert plain.pbs.past(first)["Exit_status"] == 75
    until(lambda: re.search(r"generation=2\.\d+ .*closed=[1-9]", plain.log()) is not None, "a ring from the checkpoint", 60.0)
    assert second != first
    assert plain.pbs.jobs()[second]["Resource_List"]["select"] == "2:ncpus=4"


def test_the_jobs_of_an_array_are_one_ring_and_one_may_be_lost(plain: Plain) -> None:
    array = plain.submit("-J", "0-2", "-l", "select=1:ncpus=4", "-q", plain.pbs.scavenger)
    plain.until_members(3)
    plain.pbs.run("qsig", "-s", "KILL", array.replace("[]", "[1]"))
    two = r"members=n\d,n\d,n\d closed(.|\n)*members=n\d,n\d closed="
    until(lambda: re.search(two, plain.log()) is not None, "a ring of the other two")
    until(lambda: re.search(two + r"(.|\n)* measured ", plain.log()) is not None, "the ring to go on", 60.0)


def test_a_bad_training_file_is_not_submitted(plain: Plain) -> None:
    plain.file = Path("/no/such/train.toml")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        plain.submit()
    assert caught.value.returncode == 2
    assert caught.value.stderr == "error: /no/such/train.toml: cannot be read: No such file or directory\n"
    assert plain.pbs.jobs() == {}
