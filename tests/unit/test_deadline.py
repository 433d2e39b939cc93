"""How long a process may run, and that it saves before it goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from training_parts import adam_net, run

from commensal import checkpoint
from commensal.deadline import Deadline, from_environment

SCRIPT = """
import sys
from pathlib import Path
import commensal
import torch
from torch.nn import functional
torch.set_num_threads(1)
from training_parts import adam_net
training, model = adam_net(Path(sys.argv[1]), int(sys.argv[2]))
for inputs, targets in training:
    training.step(functional.cross_entropy(model(inputs), targets))
    print(training.closed, flush=True)
print("after the loop", flush=True)
"""


def start(folder: Path, **environment: str) -> subprocess.Popen[str]:
    """A plain batch job that would train for very long."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "COMMENSAL"))}
    settings = {**clean, "PYTHONPATH": str(Path(__file__).parent), "SLURM_JOB_ID": "17", **environment}
    command = [sys.executable, "-c", SCRIPT, str(folder), "100000"]
    return subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, text=True)


@given(st.lists(st.tuples(st.sampled_from(["job", "daemon", "signal"]), st.floats(-10, 1e6)), min_size=1), st.floats(0, 1e6))
def test_the_earliest_of_the_latest_words_counts(told: list[tuple[str, float]], later: float) -> None:
    deadline = Deadline()
    assert deadline.remaining(0.0) is None
    for source, seconds in told:
        deadline.tell(source, seconds, 100.0)
    assert deadline.remaining(100.0 + later) == pytest.approx(max(0.0, min(dict(told).values()) - later), abs=1e-6)


def test_the_environment_tells_the_jobs_end() -> None:
    assert from_environment({"SLURM_JOB_END_TIME": "1060"}, 1000.0) == 60.0
    assert from_environment({"SLURM_JOB_END_TIME": "NONE"}, 1000.0) is None
    assert from_environment({}, 1000.0) is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_asked_to_end_it_finishes_the_step_saves_and_goes(tmp_path: Path, number: signal.Signals) -> None:
    job = start(tmp_path)
    try:
        assert job.stdout is not None
        while job.stdout.readline().strip() != "5":
            assert job.poll() is None
        job.send_signal(number)
        rest = job.stdout.read().split("\n")
        assert job.wait(timeout=30) == 128 + number
    finally:
        job.kill()
        job.wait()
    assert "after the loop" not in rest
    found = checkpoint.newest(tmp_path)
    assert found is not None
    assert found.step == int(([line for line in rest if line] or ["5"])[-1])
    (resumed, model), (straight, same) = adam_net(tmp_path, found.step + 1), adam_net(tmp_path / "straight", found.step + 1)
    run(resumed, model)
    run(straight, same)
    torch.testing.assert_close(model.state_dict(), same.state_dict(), rtol=0, atol=0)


def test_signals_end_a_process_that_holds_nothing_and_are_noted_afterwards() -> None:
    program = (
        "import os, signal, sys, commensal; from commensal import deadline; before = signal.getsignal(signal.SIGTERM);"
        "deadline.install(); os.kill(os.getpid(), signal.SIGUSR1);"
        "print(before.name, 'torch' in sys.modules, deadline.asked() == signal.SIGUSR1, round(deadline.remaining()))"
    )
    environment = {**os.environ, "COMMENSAL_MEMBER": "p.1", "COMMENSAL_GRACE_SECONDS": "12"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.split() == ["SIG_DFL", "False", "True", "12"]


def test_after_the_loop_the_signals_are_given_back(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    training, model = adam_net(tmp_path, 1)
    assert signal.getsignal(signal.SIGTERM) is not before
    run(training, model)
    assert signal.getsignal(signal.SIGTERM) is before


def test_near_its_end_a_job_saves_and_goes(tmp_path: Path) -> None:
    job = start(tmp_path, SLURM_JOB_END_TIME="1000")
    try:
        output, _ = job.communicate(timeout=60)
    finally:
        job.kill()
        job.wait()
    assert job.returncode == 124
    assert output == ""
