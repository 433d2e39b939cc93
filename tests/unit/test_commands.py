"""The command lines: exit codes, one line of error, and no torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

MAIN = {
    "commensal": "from commensald.cli.commensal import main; main()",
    "commensald": "from commensald.cli.daemon import main; main()",
}


def run(home: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    program, *arguments = words
    environment = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_STATE_HOME": str(home), **environ}
    environment.pop("XDG_RUNTIME_DIR", None)
    command = [sys.executable, "-c", MAIN[program], *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("program", ["commensal", "commensald"])
def test_says_its_version(tmp_path: Path, program: str) -> None:
    done = run(tmp_path, program, "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{program}, version ")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("commensal", "teach"), "error: No such command"),
        (("commensal", "submit"), "error: Missing argument"),
        (("commensal", "submit", "none.toml"), "error: none.toml: cannot be read: No such file or directory"),
        (("commensal", "--config", "none.toml", "status"), "error: none.toml: cannot be read: No such file or directory"),
        (("commensald", "--config", "none.toml"), "error: none.toml: cannot be read: No such file or directory"),
        (("commensald", "--loud"), "error: No such option"),
        (("commensal", "demo", "--folder", "/proc/x"), "error: --folder /proc/x: No such file or directory"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(tmp_path: Path, words: tuple[str, ...], line: str) -> None:
    done = run(tmp_path, *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(line)


def test_an_address_of_another_host_is_wrong_use(tmp_path: Path) -> None:
    done = run(tmp_path, "commensald", COMMENSAL_DAEMON_BIND="192.0.2.1")
    assert (done.returncode, done.stderr) == (2, "error: daemon.bind: 192.0.2.1: Cannot assign requested address\n")


def test_no_daemon_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    done = run(tmp_path, "commensal", "trainings")
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: no daemon answers at {tmp_path}/commensal/run/commensald.sock")
    assert done.stderr.count("\n") == 1


def test_config_check_tells_good_from_bad(tmp_path: Path) -> None:
    assert run(tmp_path, "commensal", "config", "check").stdout == "good: defaults only\n"
    done = run(tmp_path, "commensal", "config", "check", COMMENSAL_RING_LOST_AFTR="1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: COMMENSAL_RING_LOST_AFTR: unknown key 'ring.lost_aftr' (did you mean 'ring.lost_after'?)\n"


def test_config_show_can_be_read_back(tmp_path: Path) -> None:
    shown = run(tmp_path, "commensal", "config", "show", COMMENSAL_PILOTS_ENVIRONMENT='{ A = "1" }')
    path = tmp_path / "shown.toml"
    path.write_text(shown.stdout)
    assert tomllib.loads(shown.stdout)["pilots"]["environment"] == {"A": "1"}
    assert run(tmp_path, "commensal", "config", "show", "--config", str(path)).stdout == shown.stdout


def test_config_show_tells_origins(tmp_path: Path) -> None:
    shown = run(tmp_path, "commensal", "config", "show", "--origin", COMMENSAL_DAEMON_BIND="127.0.0.1")
    assert any(line.split() == ["bind", "=", '"127.0.0.1"', "#", "COMMENSAL_DAEMON_BIND"] for line in shown.stdout.splitlines())
    assert tomllib.loads(shown.stdout)["daemon"]["bind"] == "127.0.0.1"
    shown = run(tmp_path, "commensal", "config", "show", "--origin", "--json", COMMENSAL_DAEMON_BIND="127.0.0.1")
    assert json.loads(shown.stdout)["daemon"]["bind"] == {"value": "127.0.0.1", "origin": "COMMENSAL_DAEMON_BIND"}


def test_the_command_line_needs_neither_torch_nor_mpi() -> None:
    modules = "commensald.cli.commensal, commensald.cli.trainings, commensald.cli.status, commensald.service"
    code = f"import sys, {modules}; print([each for each in ('torch', 'mpi4py') if each in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True).stdout == "[]\n"
