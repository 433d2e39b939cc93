"""A pilot's script as MOM would run it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from commensal.pilot import hello
from commensald.schedulers.pbs import script


def run(folder: Path, written: str, nodes: str = "n7.cluster.org\nn8\n") -> subprocess.CompletedProcess[str]:
    (folder.parent / "nodes").write_text(nodes)
    environment = {"PATH": os.environ["PATH"], "PBS_NODEFILE": str(folder.parent / "nodes"), "PBS_JOBID": "1.srv"}
    return subprocess.run(["/bin/sh"], input=written, env=environment, capture_output=True, text=True, timeout=30, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "a folder"
    path.mkdir()
    return path


ARGV = ("/bin/sh", "-c", 'echo "$COMMENSAL_NODE $PBS_JOBID $GIVEN $PWD"')


def test_it_says_where_it_is_and_has_what_it_was_given(folder: Path) -> None:
    written = script.pilot("u1", str(folder), ARGV, {"GIVEN": "it's $HOME"})
    assert run(folder, written).stdout == f"n7 1.srv it's $HOME {folder}\n"


def test_an_aimed_pilot_knows_its_node(folder: Path) -> None:
    assert run(folder, script.pilot("u1", str(folder), ARGV, {"COMMENSAL_NODE": "n1"})).stdout.startswith("n1 1.srv")


def test_it_runs_once(folder: Path) -> None:
    first, other = (script.pilot(name, str(folder), ARGV, {}) for name in ("u1", "u2"))
    assert run(folder, first).stdout
    again = run(folder, first)
    assert (again.returncode, again.stdout) == (0, "")
    assert run(folder, other).stdout


def test_the_launcher_says_which_job_it_is() -> None:
    said = hello("u1", {"PBS_JOBID": "1.srv", "COMMENSAL_NODE": "n1"})
    assert (said.pilot, said.node, said.job, said.restarts) == ("u1", "n1", "1.srv", 0)


def test_a_node_that_does_not_see_the_folder_says_so(folder: Path) -> None:
    done = run(folder, script.pilot("u1", str(folder / "elsewhere"), ARGV, {}))
    assert done.returncode != 0
    assert "elsewhere" in done.stderr


def test_a_wrong_name_of_a_variable_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="not a variable's name"):
        script.pilot("u1", str(folder), ARGV, {"a b": "c"})
