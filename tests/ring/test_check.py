"""The trial ring of `commensal doctor`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def check(*words: str, **environ: str) -> tuple[int, dict[str, object]]:
    done = subprocess.run(
        [sys.executable, "-m", "commensal.ring.check", *words],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environ},
        check=False,
    )
    assert done.stdout.count("\n") == 1, done.stdout + done.stderr
    return done.returncode, json.loads(done.stdout)


def test_two_processes_form_a_ring_and_leave_nothing_behind() -> None:
    code, answer = check("--address", "127.0.0.1")
    assert (code, list(answer)) == (0, ["seconds"])
    assert list(Path("/dev/shm").glob("mpich_shm*")) == []


@pytest.mark.parametrize(
    ("words", "environ", "says"),
    [
        (["--address", "203.0.113.1"], {}, "no interface has the address '203.0.113.1'"),
        (["--address", "127.0.0.1"], {"MPI4PY_LIBMPI": "/no/such/libmpi.so"}, "/no/such/libmpi.so"),
    ],
)
def test_says_why_there_is_no_ring(words: list[str], environ: dict[str, str], says: str) -> None:
    code, answer = check(*words, **environ)
    assert code == 1
    assert says in str(answer["error"])


def test_no_mpi_comes_into_the_process_that_checks() -> None:
    code = "import sys, commensal.ring.check; print([name for name in ('torch', 'mpi4py') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True).stdout.strip() == "[]"
