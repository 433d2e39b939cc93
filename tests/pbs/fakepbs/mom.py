"""Jobs as processes: environment, files and signals as MOM gives them. Signals reach the job's session and nothing else, as MOM's do."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import shutil
import signal
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

from commensald.schedulers.local.processes import JobProcess, process_table
from fakepbs.job_attributes import output
from fakepbs.record import Record
from fakepbs.site import Site

SWEEP_SECONDS = 0.005
SIGNALLED = 256
"""Exit_status of a job that a signal ended is this and the signal."""
SPLIT = 'cd "$PBS_JOBDIR" || exit; exec "$@" 2>>"$0"'
JOINED = 'cd "$PBS_JOBDIR" || exit; exec "$@"'


class Mom:
    """All MOMs in one: every node is this machine. ``ended(job, Exit_status)`` is called when nothing of a job is left."""

    def __init__(self, folder: Path, site: Site, ended: Callable[[str, int], None]) -> None:
        self._folder, self._site, self._ended = folder, site, ended
        self._mark = uuid.uuid4().hex
        self._processes: dict[str, JobProcess] = {}
        self._moves: dict[str, list[tuple[Path, Path]]] = {}
        for name in ("jobs", "aux", "spool"):
            (folder / name).mkdir(exist_ok=True)

    def __bool__(self) -> bool:
        return bool(self._processes)

    def run(self, job: Record) -> int:
        """Start its script; gives the session."""
        script, hosts = self._folder / "jobs" / f"{job.id}.SC", self._folder / "aux" / job.id
        script.write_text(job.script)
        hosts.write_text("".join(f"{node}\n" for node in job.nodes))
        out, errors = self._files(job)
        shell = JOINED if errors is None else SPLIT
        argv = ["/bin/sh", "-c", shell, str(errors), job.asked.shell, str(script)]
        process = JobProcess(argv, f"{self._mark}.{job.id}.{job.run_count}", environment(job, self._site, hosts), out)
        self._processes[job.id] = process
        asyncio.get_running_loop().add_reader(process.pidfd, self._main_ended, job.id)
        return process.pid

    def signal(self, job: str, name: str) -> None:
        """To every process of the job's session."""
        if job in self._processes:
            session = self._processes[job].pid
            for each in process_table():
                if each.session == session and not each.zombie:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(each.pid, signal.Signals[f"SIG{name}"])

    async def end_all(self) -> None:
        """SIGKILL whatever runs, and wait until it is gone."""
        while self:
            for job in list(self._processes):
                self.signal(job, "KILL")
            await asyncio.sleep(SWEEP_SECONDS)

    def _files(self, job: Record) -> tuple[Path, Path | None]:
        """Where its output and its errors go while it runs; those that do not stay there are moved at its end."""
        final = {letter: _final(job, asked, letter) for letter, asked in (("o", job.asked.output), ("e", job.asked.error))}
        now = dict(final)
        if "d" not in job.asked.keep:
            now = {letter: self._folder / "spool" / f"{job.id}.{letter.upper()}" for letter in final}
        joined = job.asked.join == "oe"
        self._moves[job.id] = [(now[letter], final[letter]) for letter in ("o" if joined else "oe") if now[letter] != final[letter]]
        return now["o"], None if joined else now["e"]

    def _main_ended(self, job: str) -> None:
        process = self._processes[job]
        returncode = process.returncode()
        if returncode is not None:
            asyncio.get_running_loop().remove_reader(process.pidfd)
            self._sweep(job, returncode)

    def _sweep(self, job: str, returncode: int) -> None:
        process = self._processes[job]
        if any(each.session == process.pid and not each.zombie for each in process_table()):
            self.signal(job, "KILL")
            asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._sweep, job, returncode)
            return
        process.close()
        del self._processes[job]
        for now, final in self._moves.pop(job):
            with contextlib.suppress(OSError):
                shutil.copyfile(now, final)  # not moved: /dev/null would get the file's mode, and be nobody else's to write
                now.unlink()
        self._ended(job, returncode if returncode >= 0 else SIGNALLED - returncode)


def environment(job: Record, site: Site, hosts: Path) -> dict[str, str]:
    """What MOM gives a job (qsub(1B), ENVIRONMENT VARIABLES): nothing of the submitter's but PBS_O_* and what -v named."""
    account = pwd.getpwuid(os.getuid())
    cpus = str(job.asked.chunks[0].ncpus)
    given: Mapping[str, str] = {
        "HOME": account.pw_dir,
        "LOGNAME": account.pw_name,
        "USER": account.pw_name,
        "SHELL": "/bin/bash",
        "PATH": f"{hosts.parents[1] / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "PBS_ENVIRONMENT": "PBS_BATCH",
        "PBS_JOBCOOKIE": uuid.uuid4().hex.upper(),
        "PBS_JOBDIR": account.pw_dir,
        "PBS_JOBID": job.id,
        "PBS_JOBNAME": job.asked.name,
        "PBS_MOMPORT": "15003",
        "PBS_NODEFILE": str(hosts),
        "PBS_NODENUM": "0",
        "PBS_QUEUE": job.queue,
        "PBS_TASKNUM": "1",
        "NCPUS": cpus,
        "OMP_NUM_THREADS": cpus,
        "TMPDIR": "/var/tmp",
    }
    array = {} if job.index is None else {"PBS_ARRAY_INDEX": str(job.index), "PBS_ARRAY_ID": job.parent or ""}
    return {**job.asked.variables, **job.origin, **given, **array}


def _final(job: Record, asked: str | None, letter: str) -> Path:
    """A folder means a file of the job's name in it."""
    path = Path(output(job, asked, letter))
    return path / f"{job.id}.{'OU' if letter == 'o' else 'ER'}" if path.is_dir() else path
