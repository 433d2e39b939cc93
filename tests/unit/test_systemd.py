"""The units as systemd reads them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNITS = Path(__file__).parents[2] / "systemd"
MOST_EXPOSED = 3.0

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze (apt-get install systemd)")
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root may give folders to another account")


def run(*argv: str | Path, folder: Path) -> str:
    """Standard output and error of a command that must succeed; a user's manager wants a runtime folder."""
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(folder), "LC_ALL": "C.UTF-8"}
    done = subprocess.run([*map(str, argv)], capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def installed(unit: str, folder: Path) -> Path:
    """A copy that starts a program which is there."""
    program = folder / "commensald"
    program.write_text(f"#!{sys.executable}\n")
    program.chmod(0o755)
    copy = folder / Path(unit).name
    text, found = re.subn(r"(?m)^ExecStart=\S+", f"ExecStart={program}", (UNITS / unit).read_text())
    assert found == 1
    copy.write_text(text)
    return copy


@needs_systemd
@pytest.mark.parametrize(("unit", "manager"), [("commensald.service", "--system"), ("user/commensald.service", "--user")])
def test_systemd_finds_no_fault(unit: str, manager: str, tmp_path: Path) -> None:
    assert run("systemd-analyze", "verify", manager, "--man=no", installed(unit, tmp_path), folder=tmp_path) == ""


@needs_systemd
def test_the_service_is_little_exposed(tmp_path: Path) -> None:
    said = run("systemd-analyze", "security", "--offline=true", "--no-pager", installed("commensald.service", tmp_path), folder=tmp_path)
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", said)
    assert found is not None, said
    assert float(found[1]) < MOST_EXPOSED


@pytest.mark.parametrize("unit", ["commensald.service", "user/commensald.service"])
def test_systemd_hears_from_the_daemon_itself(unit: str) -> None:
    lines = (UNITS / unit).read_text().splitlines()
    for line in ("Type=notify", "ExecReload=/bin/kill -HUP $MAINPID", "WatchdogSec=180", "RuntimeDirectory=commensal"):
        assert line in lines


@needs_systemd
@as_root
def test_the_account_and_its_folders_are_made(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    run("systemd-sysusers", f"--root={tmp_path}", UNITS / "sysusers.d/commensal.conf", folder=tmp_path)
    name, _, uid, *_, home, shell = (tmp_path / "etc/passwd").read_text().strip().splitlines()[-1].split(":")
    assert (name, home, shell) == ("commensal", "/var/lib/commensal", "/usr/sbin/nologin")
    run("systemd-tmpfiles", "--create", f"--root={tmp_path}", UNITS / "tmpfiles.d/commensal.conf", folder=tmp_path)
    owned = {path: (tmp_path / path).stat() for path in ("var/lib/commensal", "run/commensal", "etc/commensal", "etc/commensal/conf.d")}
    assert {path: (each.st_mode & 0o777, each.st_uid == int(uid)) for path, each in owned.items()} == {
        "var/lib/commensal": (0o700, True),
        "run/commensal": (0o700, True),
        "etc/commensal": (0o755, False),
        "etc/commensal/conf.d": (0o755, False),
    }
