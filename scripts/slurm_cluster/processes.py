"""Slurm's daemons as processes: started, found by their pid files, ended. Nothing is ever found by its name alone."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from slurm_cluster.settings import ClusterError, Layout

COMMAND_SECONDS = 20.0


def environment(layout: Layout) -> dict[str, str]:
    """A clean one: nothing of the caller's own SLURM_* or locale gets in."""
    return {"PATH": layout.search_path, "LC_ALL": "C.UTF-8", "SLURM_CONF": str(layout.conf)}


def run(layout: Layout, command: Sequence[str], *, user: str | None = None, seconds: float = COMMAND_SECONDS) -> str:
    """What the command printed. Raises ClusterError with its last words when it fails or takes longer."""
    try:
        done = subprocess.run(
            command, env=environment(layout), user=user, group=user, capture_output=True, text=True, timeout=seconds, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(f"{command[0]}: {error}") from error
    if done.returncode:
        raise ClusterError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def alive(layout: Layout, daemon: str) -> int | None:
    """The daemon's pid while it runs. A pid file whose process is another program's by now counts for nothing.

    One that was told to reconfigure has started anew under the name of its file (Debian's slurmctld-wlm) since 23.11.
    """
    try:
        pid = int(layout.pid_file(daemon).read_text())
        name, _, state = Path(f"/proc/{pid}/stat").read_text().partition(" (")[2].partition(") ")
    except (OSError, ValueError):
        return None
    return pid if name.removesuffix("-wlm") == daemon.partition(".")[0] and state[0] not in "ZX" else None


def end(layout: Layout, daemons: Sequence[str], seconds: float = 10.0) -> None:
    """SIGTERM, then SIGKILL to those that are still there."""
    for number, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, 5.0)):
        left = {name: pid for name in daemons if (pid := alive(layout, name)) is not None}
        for pid in left.values():
            _send(pid, number)
        if wait(lambda left=left: not any(alive(layout, name) for name in left), patience):  # type: ignore[misc]
            return
    raise ClusterError(f"still running: {', '.join(name for name in daemons if alive(layout, name))}")


def end_leftovers(layout: Layout) -> None:
    """SIGKILL to what jobs of this cluster left behind: processes that carry its SLURM_CONF in their environment."""
    mark = f"SLURM_CONF={layout.conf}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid() and _carries(entry / "environ", mark) and _slurms(entry):
            _send(int(entry.name), signal.SIGKILL)


def wait(until: Callable[[], bool], seconds: float) -> bool:
    """Whether it came true within so long."""
    give_up = time.monotonic() + seconds
    while not until():
        if time.monotonic() > give_up:
            return False
        time.sleep(0.05)
    return True


def _slurms(process: Path) -> bool:
    """A step's supervisor, or something inside a job; a shell in which somebody typed ``export SLURM_CONF`` is neither."""
    return _carries(process / "comm", b"slurmstepd\n") or _carries(process / "environ", b"SLURM_JOB_ID=", prefix=True)


def _carries(file: Path, mark: bytes, *, prefix: bool = False) -> bool:
    """Whether one of the file's NUL-separated entries is ``mark``, or begins with it."""
    try:
        entries = file.read_bytes().split(b"\0")
    except OSError:
        return False
    return any(entry.startswith(mark) if prefix else entry == mark for entry in entries)


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
