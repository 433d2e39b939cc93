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


class JobProcess:
    """The main process of a job and everything that came of it."""

    def __init__(self, argv: Sequence[str], mark: str, environment: Mapping[str, str], log: Path | None) -> None:
        """Start ``argv`` in a new session; output goes to the end of ``log``. Raises :class:`OSError`."""
        self._mark = f"{MARK}={mark}".encode()
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
        self._started = _parse_stat(_read(self.pid, "stat")).started

    def members(self) -> list[int]:
        """The pids of its living processes, the main one first."""
        table = process_table()
        found = {p.pid for p in table if p.session == self.pid or (p.started >= self._started and self._marked(p.pid))}
        grown = True
        while grown:
            children = {p.pid for p in table if p.parent in found} - found
            grown = bool(children)
            found |= children
        return sorted((p.pid for p in table if p.pid in found and not p.zombie), key=lambda pid: pid != self.pid)

    def signal(self, *numbers: int) -> None:
        """Send these to every process, one after the other, and to those that were forked meanwhile."""
        reached: set[int] = set()
        while fresh := [pid for pid in self.members() if pid not in reached]:
            for pid in fresh:
                for number in numbers:
                    _send(pid, number)
            reached.update(fresh)

    def returncode(self) -> int | None:
        """Reap the main process if it has ended: its exit code, or minus the signal that ended it."""
        return self._main.poll()

    def close(self) -> None:
        """Forget it, once reaped."""
        os.close(self.pidfd)

    def _marked(self, pid: int) -> bool:
        try:
            return self._mark in _read(pid, "environ").split(b"\0")
        except OSError:
            return False


def process_table() -> list[Process]:
    """Every process that can be seen now."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                found.append(_parse_stat(_read(int(name), "stat")))
    return found


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
