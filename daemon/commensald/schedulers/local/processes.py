"""The processes of a job: started in a session of their own, found again, signalled and reaped, whatever they forked.

A process belongs to a job when its session or one of its ancestors does, or when it carries the job's mark in its environment:
a grandchild that made itself a daemon is found too. Linux only (``/proc``, pidfd).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

MARK = "COMMENSAL_LOCAL_JOB"
SCRUBBED = ("SLURM", "PMI", "PBS_")
"""Prefixes of variables of the server's own job, if it runs in one: no job of ours may take them for its own."""


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the process table (proc_pid_stat(5))."""

    pid: int
    parent: int
    session: int
    zombie: bool
    started: int
    """Clock ticks since boot."""
    mark: str | None = None


class JobProcess:
    """The main process of a job and everything that came of it."""

    def __init__(self, argv: Sequence[str], mark: str, environment: Mapping[str, str], log: Path | None) -> None:
        """Start ``argv`` in a new session; output goes to the end of ``log``. Raises :class:`OSError`."""
        self._mark = mark
        with contextlib.ExitStack() as files:
            output = subprocess.DEVNULL if log is None else files.enter_context(log.open("ab", buffering=0))
            self._main = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**environment, MARK: mark},
                start_new_session=True,
            )
        self.pid = self._main.pid
        self.pidfd = os.pidfd_open(self.pid)

    def members(self, table: Sequence[Process]) -> list[int]:
        """The pids of its living processes."""
        found = {p.pid for p in table if p.session == self.pid or p.mark == self._mark}
        grown = True
        while grown:
            children = {p.pid for p in table if p.parent in found} - found
            grown = bool(children)
            found |= children
        return [p.pid for p in table if p.pid in found and not p.zombie]

    def returncode(self) -> int | None:
        """Reap the main process if it has ended: its exit code, or minus the signal that ended it."""
        return self._main.poll()

    def close(self) -> None:
        """Forget it, once reaped."""
        os.close(self.pidfd)


def send(jobs: Sequence[JobProcess], *numbers: int) -> None:
    """Send these signals to every process of the jobs, one after the other, and to those that were forked meanwhile."""
    reached: set[int] = set()
    while True:
        table = process_table()
        fresh = {pid for job in jobs for pid in job.members(table)} - reached
        if not fresh:
            return
        for pid in fresh:
            for number in numbers:
                _send(pid, number)
        reached |= fresh


def process_table() -> list[Process]:
    """Every process that can be seen now; marks are read of those that are younger than we are."""
    born = _parse_stat(_read(os.getpid(), "stat")).started
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                process = _parse_stat(_read(int(name), "stat"))
                found.append(process if process.started < born else msgspec.structs.replace(process, mark=_mark(process.pid)))
    return found


def _mark(pid: int) -> str | None:
    prefix = f"{MARK}=".encode()
    try:
        environment = _read(pid, "environ").split(b"\0")
    except OSError:
        return None
    return next((entry.removeprefix(prefix).decode(errors="replace") for entry in environment if entry.startswith(prefix)), None)


def _read(pid: int, name: str) -> bytes:
    with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:
        return file.read()


def _parse_stat(line: bytes) -> Process:
    # The command in parentheses may hold spaces and parentheses itself.
    head, _, rest = line.rpartition(b")")
    fields = rest.split()
    return Process(
        pid=int(head.split(b" ", 1)[0]), parent=int(fields[1]), session=int(fields[3]), zombie=fields[0] in b"ZX", started=int(fields[19])
    )


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def slurm_environment(
    base: Mapping[str, str], *, job: str, name: str, nodes: Sequence[str], partition: str, start: float, end: float | None
) -> dict[str, str]:
    """What ``sbatch`` puts into a job's environment, over ``base`` without the server's own job (sbatch(1), OUTPUT ENVIRONMENT)."""
    kept = {key: value for key, value in base.items() if not key.startswith(SCRUBBED)}
    given = {
        "SLURM_JOB_ID": job,
        "SLURM_JOBID": job,
        "SLURM_JOB_NAME": name,
        "SLURM_JOB_PARTITION": partition,
        "SLURM_JOB_NODELIST": ",".join(nodes),
        "SLURM_JOB_NUM_NODES": str(len(nodes)),
        "SLURMD_NODENAME": nodes[0],
        "SLURM_JOB_START_TIME": str(int(start)),
    }
    return {**kept, **given, **({} if end is None else {"SLURM_JOB_END_TIME": str(int(end))})}
