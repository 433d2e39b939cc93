"""The trial ring of `commensal doctor`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def check(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "commensal.ring.check", *words],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environ},
        check=False,
    )


def test_two_processes_form_a_ring_and_leave_nothing_behind() -> None:
    done = check("--address", "127.0.0.1")
    assert (done.returncode, done.stderr) == (0, "")
    assert list(json.loads(done.stdout)) == ["seconds"]
    assert list(Path("/dev/shm").glob("mpich_shm*")) == []


@pytest.mark.parametrize(
    ("words", "environ", "says"),
    [
        (["--address", "203.0.113.1"], {}, "no interface has the address '203.0.113.1'"),
        (["--address", "127.0.0.1"], {"MPI4PY_LIBMPI": "/no/such/libmpi.so"}, "/no/such/libmpi.so"),
    ],
)
def test_says_why_there_is_no_ring(words: list[str], environ: dict[str, str], says: str) -> None:
    done = check(*words, **environ)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert says in done.stderr


def test_no_mpi_comes_into_the_process_that_checks() -> None:
    code = "import sys, commensal.ring.check; print([name for name in ('torch', 'mpi4py') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True).stdout.strip() == "[]"
