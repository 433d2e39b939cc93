"""The jobs that run on the embedded cluster: from the core's actions to processes, events, and word of their end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from commensald.events import Emit
from commensald.schedulers import PilotSpec
from commensald.schedulers.local.jobs import JobSpec, Reason, Signal
from commensald.schedulers.local.processes import JobProcess, process_table, send, slurm_environment

SWEEP_SECONDS = 0.002
"""How often a job's last processes are looked for after SIGKILL."""
NO_SUCH_COMMAND = 127


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """What a job runs: a pilot's own command, or a sleep."""

    spec: JobSpec
    seconds: float = 0.0
    pilot: PilotSpec | None = None

    @property
    def argv(self) -> Sequence[str]:
        """The command."""
        return ("sleep", f"{self.seconds:.3f}") if self.pilot is None else self.pilot.argv

    @property
    def log(self) -> Path | None:
        """Where its output goes."""
        return None if self.pilot is None else Path(self.pilot.folder) / f"{self.pilot.uuid}.log"


class Running:
    """Job id -> its processes. ``ended(job)`` is called when the last one is gone."""

    def __init__(self, emit: Emit, ended: Callable[[str], None], mark: str) -> None:
        self._emit = emit
        self._ended = ended
        self._mark = mark
        self._processes: dict[str, JobProcess] = {}
        self._payloads: dict[str, Payload] = {}
        self._nodes: dict[str, tuple[str, ...]] = {}
        self._reasons: dict[str, Reason] = {}

    def __contains__(self, job: str) -> bool:
        return job in self._processes

    def __bool__(self) -> bool:
        return bool(self._processes)

    def start(self, payload: Payload, nodes: tuple[str, ...], start: float, end: float | None) -> None:
        """Start the job's process; one that cannot start has ended at once."""
        job = payload.spec.id
        self._payloads[job], self._nodes[job] = payload, nodes
        try:
            process = JobProcess(payload.argv, f"{self._mark}.{job}", self._environment(payload, nodes, start, end), payload.log)
        except (OSError, ValueError) as error:
            print(f"job {job}: {error}", file=sys.stderr, flush=True)
            asyncio.get_running_loop().call_soon(self._finish, job, NO_SUCH_COMMAND)
            return
        self._processes[job] = process
        self._emit("job.started", job=job, pilot=payload.spec.pilot, nodes=nodes, pid=process.pid)
        asyncio.get_running_loop().add_reader(process.pidfd, self._main_ended, job)

    def signal_all(self, signals: Iterable[Signal]) -> None:
        """Send SIGCONT and the signal to every process of these jobs: a stopped one would not hear the signal alone."""
        by_name: dict[str, list[JobProcess]] = {}
        for each in signals:
            if each.job in self._processes:
                self._reasons.setdefault(each.job, each.reason)
                pilot = self._payloads[each.job].spec.pilot
                self._emit("job.signalled", job=each.job, pilot=pilot, signal=each.signal, reason=each.reason)
                by_name.setdefault(each.signal, []).append(self._processes[each.job])
        for name, processes in by_name.items():
            send(processes, signal.SIGCONT, signal.Signals[f"SIG{name}"])

    def kill(self, job: str, reason: Reason) -> None:
        """Send SIGKILL to every process of the job."""
        if job not in self._processes:
            return
        self._reasons[job] = reason
        self._emit("job.killed", job=job, pilot=self._payloads[job].spec.pilot, reason=reason)
        send((self._processes[job],), signal.SIGKILL)

    async def end_all(self, patience_seconds: float) -> None:
        """SIGTERM all jobs, SIGKILL what is left after ``patience_seconds``, and wait until they are gone."""
        self.signal_all(Signal(job=job, signal="TERM", reason=Reason.SHUTDOWN) for job in self._processes)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience_seconds
        while self and loop.time() < deadline:
            await asyncio.sleep(SWEEP_SECONDS)
        for job in list(self._processes):
            self.kill(job, Reason.SHUTDOWN)
        while self:
            await asyncio.sleep(SWEEP_SECONDS)

    def _environment(self, payload: Payload, nodes: tuple[str, ...], start: float, end: float | None) -> dict[str, str]:
        spec = payload.spec
        base = {**os.environ, **(payload.pilot.environment if payload.pilot is not None else {})}
        partition = "primary" if spec.pilot is None else "scavenger"
        return slurm_environment(base, job=spec.id, name=spec.name, nodes=nodes, partition=partition, start=start, end=end)

    def _main_ended(self, job: str) -> None:
        process = self._processes[job]
        returncode = process.returncode()
        if returncode is None:
            return
        asyncio.get_running_loop().remove_reader(process.pidfd)
        self._sweep(job, returncode)

    def _sweep(self, job: str, returncode: int) -> None:
        """The job has ended once nothing of it is left: kill the rest, look again."""
        process = self._processes[job]
        if process.members(process_table()):
            send((process,), signal.SIGKILL)
            asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._sweep, job, returncode)
            return
        process.close()
        del self._processes[job]
        self._finish(job, returncode)

    def _finish(self, job: str, returncode: int) -> None:
        spec, nodes = self._payloads.pop(job).spec, self._nodes.pop(job)
        reason = self._reasons.pop(job, "exited")
        self._emit("job.ended", job=job, pilot=spec.pilot, nodes=nodes, reason=reason, returncode=returncode)
        self._ended(job)
