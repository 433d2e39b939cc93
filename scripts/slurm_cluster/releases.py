"""Slurm of another release than the installed one: Debian's packages of another suite in a folder of their own, made once.

Its programs run where they lie, as any user, beside everything of this machine: they are told by their headers to take their own C library
and Slurm's own libraries from that folder (``patchelf``, which comes along). So pilots and primary jobs see this machine's files and Python
as they would under the installed Slurm; no root, no chroot.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from slurm_cluster.archive import bring
from slurm_cluster.settings import ClusterError

SUITES = {"24.11": "trixie", "26.05": "forky"}
PACKAGES = ("slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge", "patchelf")
DAEMONS = ("slurmctld", "slurmd", "slurmstepd", "munged")
COMMANDS = (
    *("sacct", "sacctmgr", "salloc", "sattach", "sbatch", "sbcast", "scancel", "scontrol", "sdiag", "sinfo", "sprio"),
    *("squeue", "srun", "sshare", "sstat", "strigger", "munge", "unmunge"),
)
SHARED = Path("/var/cache/commensal")
"""Root's, which every user may run."""


def folder(version: str) -> Path:
    """Where this release is, or is to be: root's where it is whole, else the caller's own cache."""
    name = f"slurm-{version}"
    own = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "commensal"
    return (SHARED if os.geteuid() == 0 or _whole(SHARED / name) else own) / name


def fetch(version: str) -> Path:
    """The folder of this release with its ``bin`` and ``plugins``, made now where it is not there yet. Raises ClusterError."""
    place = folder(version)
    if _whole(place):
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_name(f"{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _whole(place):
            _make(version, place)
    return place


def _whole(place: Path) -> bool:
    return (place / "whole").exists()


def _make(version: str, place: Path) -> None:
    suite, began = SUITES[version], time.monotonic()
    print(f"getting Slurm {version} from Debian {suite} into {place}: 40 MB to download, ten seconds or a minute", file=sys.stderr)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o755)
    count = bring(suite, PACKAGES, place)
    shutil.rmtree(place / "apt")
    _relocate(place)
    found = release(place / "bin" / "slurmctld")
    if not found.startswith(f"{version}."):
        raise ClusterError(f"Debian {suite} has Slurm {found or 'of unknown version'} by now, not {version}")
    (place / "whole").write_text(f"{found}\n")
    print(f"{count} packages, {time.monotonic() - began:.0f} s", file=sys.stderr)


def release(slurmctld: Path) -> str:
    """As ``slurmctld -V`` says after ``slurm-wlm``: 24.11.5; empty where it says nothing of the kind."""
    said = subprocess.run([slurmctld, "-V"], capture_output=True, text=True, timeout=20, check=False).stdout.split()
    return said[-1] if said else ""


def _relocate(place: Path) -> None:
    """Let programs and plugins find the C library and each other here, and put the programs into ``bin``."""
    plugins = next((place / "usr" / "lib").glob("*/slurm-wlm"))
    libraries = plugins.parent
    loader = next(libraries.glob("ld-linux*.so.*"))
    patchelf = [str(loader), "--library-path", str(libraries), str(place / "usr" / "bin" / "patchelf")]
    here = ["--force-rpath", "--set-rpath", f"{plugins}:{libraries}"]
    programs = dict(_programs(place))
    for path in programs.values():
        _run([*patchelf, "--set-interpreter", str(loader), *here, str(path)])
    for path in plugins.glob("*.so*"):
        if not path.is_symlink():
            _run([*patchelf, *here, str(path)])
    (place / "bin").mkdir()
    for name, path in programs.items():
        (place / "bin" / name).symlink_to(path)
    (place / "plugins").symlink_to(plugins)


def _programs(place: Path) -> Iterator[tuple[str, Path]]:
    """Debian calls Slurm's daemons slurmd-wlm and so on."""
    for name in (*DAEMONS, *COMMANDS):
        places = (place / "usr" / part / f"{name}{suffix}" for part in ("sbin", "bin") for suffix in ("-wlm", ""))
        found = next((path for path in places if path.is_file()), None)
        if found is None:
            raise ClusterError(f"{name} is not among the packages")
        yield name, found


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise ClusterError(f"{command[-1]}: {done.stderr.strip()}")
