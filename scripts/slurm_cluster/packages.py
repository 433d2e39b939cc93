"""Slurm's programs: found, or installed from Debian when root asks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

from slurm_cluster.processes import PATHS
from slurm_cluster.settings import ClusterError

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged")
PACKAGES = ("slurm-wlm", "munge")
INSTALL_SECONDS = 600.0


def require(version: str) -> None:
    """Slurm of this version (``22.05``) is here afterwards. Raises ClusterError."""
    if not all(shutil.which(name, path=PATHS) for name in PROGRAMS):
        _install()
    found = installed_version()
    if not found.startswith(f"{version}."):
        raise ClusterError(f"Slurm {version} was asked for, {found or 'an unknown version'} is installed")


def installed_version() -> str:
    """As ``slurmctld -V`` says: ``slurm-wlm 22.05.8``."""
    said = subprocess.run(["/usr/sbin/slurmctld", "-V"], capture_output=True, text=True, timeout=20, check=False).stdout
    match = re.search(r"\d+\.\d+\.\d+", said)
    return match.group() if match else ""


def _install() -> None:
    if os.geteuid() != 0:
        raise ClusterError(f"Slurm is not installed; as root: apt-get install --no-install-recommends {' '.join(PACKAGES)}")
    print(f"installing {' and '.join(PACKAGES)} (about 30 s)", file=sys.stderr)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    for command in (["apt-get", "update", "-q"], ["apt-get", "install", "-q", "-y", "--no-install-recommends", *PACKAGES]):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        if done.returncode:
            raise ClusterError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
