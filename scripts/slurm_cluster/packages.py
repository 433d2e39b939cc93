"""Slurm's programs: found, installed from Debian when root asks, or another release of them beside the installed one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from slurm_cluster import releases
from slurm_cluster.settings import PATHS, ClusterError

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged")
SLURMCTLD = Path("/usr/sbin/slurmctld")
PACKAGES = ("slurm-wlm", "munge")
INSTALL_SECONDS = 600.0


def require(version: str | None) -> tuple[str, Path | None]:
    """Slurm of this version (``24.11``; ``None``: the installed one) is here afterwards. Raises ClusterError.

    Gives the whole version (``24.11.5``) and the folder of its programs, ``None`` for the installed ones.
    """
    if version in releases.SUITES and not _installed(version):
        place = releases.fetch(version)
        return releases.release(place / "bin" / "slurmctld"), place
    if not all(shutil.which(name, path=PATHS) for name in PROGRAMS):
        _install()
    found = releases.release(SLURMCTLD)
    if version is not None and not found.startswith(f"{version}."):
        raise ClusterError(f"Slurm {version} was asked for, {found or 'an unknown version'} is installed")
    return found, None


def _installed(version: str) -> bool:
    return SLURMCTLD.exists() and releases.release(SLURMCTLD).startswith(f"{version}.")


def _install() -> None:
    if os.geteuid() != 0:
        raise ClusterError(f"Slurm is not installed; as root: apt-get install --no-install-recommends {' '.join(PACKAGES)}")
    print(f"installing {' and '.join(PACKAGES)} (about 30 s)", file=sys.stderr)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    for command in (["apt-get", "update", "-q"], ["apt-get", "install", "-q", "-y", "--no-install-recommends", *PACKAGES]):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        if done.returncode:
            raise ClusterError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
