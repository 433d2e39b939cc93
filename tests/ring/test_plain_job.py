"""The tasks of a plain job as processes: what srun starts in every node, without Slurm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "scripts" / "training.py"
FAILS = "raise ValueError('no such luck')\n"
SECONDS = 60.0


class Job:
    """Tasks of one job, each in a process group of its own, which is signalled as Slurm signals a step."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._tasks: list[subprocess.Popen[bytes]] = []
        (folder / "t").mkdir()
        self.write(SCRIPT)

    def write(self, script: Path) -> None:
        (self.folder / "t.toml").write_text(f'[training]\nname = "t"\nscript = "{script}"\nfolder = "t"\nnodes = [1, 2]\n')

    def start(self, tasks: int, restarts: int = 0, **environ: str) -> None:
        for task in range(tasks):
            slurm = {"SLURM_JOB_ID": "7", "SLURM_PROCID": str(task), "SLURM_RESTART_COUNT": str(restarts), "COMMENSAL_NODE": f"n{task}"}
            environment = {**os.environ, "COMMENSAL_DAEMON_BIND": "127.0.0.1", "COMMENSAL_GRACE_SECONDS": "10", **slurm, **environ}
            command = [sys.executable, "-m", "commensald.plain.task", str(self.folder / "t.toml")]
            log = (self.folder / f"log-{task}").open("ab")
            self._tasks.append(subprocess.Popen(command, env=environment, stderr=log, stdout=log, start_new_session=True))

    def signal(self, number: signal.Signals) -> None:
        for task in self._tasks:
            os.killpg(task.pid, number)

    def wait(self) -> list[int]:
        """Exit codes by task; they may be started anew afterwards."""
        codes = [task.wait(timeout=SECONDS) for task in self._tasks]
        self._tasks.clear()
        return codes

    def log(self) -> str:
        return (self.folder / "log-0").read_text()

    def until(self, true: Callable[[], bool]) -> None:
        give_up = time.monotonic() + SECONDS
        while not true():
            assert time.monotonic() < give_up, self.log()
            time.sleep(0.05)

    def close(self) -> None:
        for task in self._tasks:
            os.killpg(task.pid, signal.SIGKILL)
            task.wait()


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    job = Job(tmp_path)
    yield job
    job.close()


def test_two_tasks_are_one_ring_and_end_with_it(job: Job, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.write_text("1")
    job.start(2, MODEL="mlp", STEPS="40", GATE=str(gate))
    job.until(lambda: "members=n0,n1" in job.log() or "members=n1,n0" in job.log())
    gate.write_text("1000")
    assert job.wait() == [0, 0]
    assert "finished: 40 steps" in job.log()


def test_who_is_asked_to_leave_saves_and_the_next_start_goes_on(job: Job, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.write_text("5")
    job.start(2, MODEL="mlp", STEPS="30", GATE=str(gate))
    job.until(lambda: "members=n0,n1" in job.log() or "members=n1,n0" in job.log())
    gate.write_text("10")
    time.sleep(0.5)
    job.signal(signal.SIGUSR1)
    gate.write_text("1000")
    assert job.wait() == [75, 75]
    before = int(next((tmp_path / "t" / "checkpoints").glob("step-*")).name.removeprefix("step-"))
    job.start(1, restarts=1, MODEL="mlp", STEPS=str(before + 20))
    assert job.wait() == [0]
    assert f"closed={before}" in job.log()


def test_a_script_that_raises_fails_the_job(job: Job, tmp_path: Path) -> None:
    (tmp_path / "raises.py").write_text(FAILS)
    job.write(tmp_path / "raises.py")
    job.start(1)
    assert job.wait() == [1]
    assert "the script failed" in job.log()
    assert "ValueError: no such luck" in job.log()


def test_a_bad_training_file_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "commensald.plain.task", "--check", str(tmp_path / "none.toml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
