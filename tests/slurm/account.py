"""Whose cluster it is: an ordinary user's. Root makes one, so that nothing here passes because root may do everything."""

from __future__ import annotations

import functools
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

USER = "commensal-test"
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """An account, and a Python with ``commensal`` that it may run."""

    user: str
    python: str
    home: Path
    """A folder of its own, for as long as it is needed."""

    def options(self, environment: dict[str, str]) -> dict[str, Any]:
        """For :mod:`subprocess`: run as this account, in its folder, with nothing but this environment and the basics."""
        basics = {"PATH": PATH, "HOME": str(self.home), "USER": self.user, "LC_ALL": "C.UTF-8"}
        identity: dict[str, Any] = {"user": self.user, "group": pwd.getpwnam(self.user).pw_gid, "extra_groups": []}
        return {"env": basics | environment, "cwd": self.home, **(identity if os.geteuid() == 0 else {})}

    def run(self, argv: Sequence[str], environment: dict[str, str], seconds: float = 30.0) -> str:
        """What it printed. Raises CalledProcessError with its output, and TimeoutExpired."""
        options = self.options(environment)
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=seconds, check=False, **options)
        if done.returncode:
            error = subprocess.CalledProcessError(done.returncode, argv, done.stdout, done.stderr)
            error.add_note(f"{done.stdout}\n{done.stderr}")
            raise error
        return str(done.stdout)


@functools.cache
def account() -> Account:
    """The user that runs this, or for root one that is made: its folder is removed by :func:`forget`."""
    home = Path(tempfile.mkdtemp(prefix="commensal-slurm-"))
    home.chmod(0o755)  # munged wants its socket to be within everybody's reach
    if os.geteuid() != 0:
        return Account(user=pwd.getpwuid(os.geteuid()).pw_name, python=sys.executable, home=home)
    if not any(each.pw_name == USER for each in pwd.getpwall()):
        subprocess.run(["useradd", "--system", "--no-create-home", "--shell", "/bin/sh", USER], check=True, timeout=30)
    shutil.chown(home, USER)
    return Account(user=USER, python=_python(home), home=home)


def forget(made: Account) -> None:
    """Remove its folder."""
    shutil.rmtree(made.home, ignore_errors=True)
    account.cache_clear()


def _python(home: Path) -> str:
    """Ours if the account can run it; otherwise (root's own Python lies in /root) one of the same version that sees our packages."""
    found = sys.executable if _runs(sys.executable) else _beside(home)
    if not _runs(found):
        raise RuntimeError(f"{USER} has no Python {sys.version_info.major}.{sys.version_info.minor} to run commensal with")
    return found


def _runs(python: str) -> bool:
    command = [python, "-c", "import commensal, commensald"]
    try:
        return not subprocess.run(command, user=USER, group=USER, cwd="/", capture_output=True, timeout=60, check=False).returncode
    except PermissionError:
        return False


def _beside(home: Path) -> str:
    folder, packages = (
        home / "venv",
        Path(sys.prefix) / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages",
    )
    python = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True, timeout=60)
    inside = folder / packages.relative_to(sys.prefix)
    (inside / "commensal-test.pth").write_text(f"import site; site.addsitedir({str(packages)!r})\n")
    libraries = Path(sys.prefix) / "lib"
    for library in (*libraries.glob("*.so*"), *libraries.glob("mpich")):
        (folder / "lib" / library.name).symlink_to(library)  # MPI's, which mpi4py looks for beside the interpreter
    return str(folder / "bin" / "python")
