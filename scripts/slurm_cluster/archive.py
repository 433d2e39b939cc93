"""Debian's packages of another suite, downloaded by apt without a word to the system's own state: any user may, nothing is installed."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Sequence
from pathlib import Path

from slurm_cluster.settings import ClusterError

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
DOWNLOAD_SECONDS = 900.0
UNPACK_SECONDS = 60.0


def bring(suite: str, packages: Sequence[str], folder: Path) -> int:
    """Unpack these packages, and all that they need, into the empty ``folder``; gives how many there were. Raises ClusterError."""
    apt = folder / "apt"
    for each in ("state/lists/partial", "cache/archives/partial"):
        (apt / each).mkdir(parents=True)
    signed = f" [signed-by={KEYRING}]" if KEYRING.exists() else ""
    (apt / "sources.list").write_text(f"deb{signed} {_mirror()} {suite} main\n")
    command = ["apt-get", "--quiet", *_apart(apt)]
    _run([*command, "update"], DOWNLOAD_SECONDS)
    _run([*command, "--yes", "--no-install-recommends", "--download-only", "install", *packages], DOWNLOAD_SECONDS)
    archives = sorted((apt / "cache" / "archives").glob("*.deb"))
    for archive in archives:
        _run(["dpkg-deb", "--extract", str(archive), str(folder)], UNPACK_SECONDS)
    return len(archives)


def _mirror() -> str:
    """The address of Debian's main archive in this machine's own sources."""
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(LABEL)", "Created-By: Packages"]
    rows = (line.split(" ", 1) for line in _run(asked, UNPACK_SECONDS).splitlines())
    found = next((address for address, label in rows if label == "Debian" or address.rstrip("/").endswith("/debian")), None)
    if found is None:
        raise ClusterError("apt's sources name no Debian archive: another release of Slurm than the installed one needs one")
    return found


def _apart(apt: Path) -> list[str]:
    """Options that keep apt within its folder: nothing is known to be installed, so everything needed is downloaded."""
    options = {
        "Dir::State": apt / "state",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": apt / "cache",
        "Dir::Etc::SourceList": apt / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::Preferences": "/dev/null",
        "Dir::Etc::PreferencesParts": "/dev/null",
        "APT::Sandbox::User": pwd.getpwuid(os.geteuid()).pw_name,
        "Acquire::Check-Valid-Until": "false",  # a clock may be ahead of a suite that is still being made
        "Acquire::Languages": "none",
        "Debug::NoLocking": "true",
    }
    return [word for key, value in options.items() for word in ("-o", f"{key}={value}")]


def _run(command: Sequence[str], seconds: float) -> str:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(f"{command[0]}: {error}") from error
    if done.returncode:
        raise ClusterError(f"{command[0]}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout
