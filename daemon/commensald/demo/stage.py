"""The demo's processes: the embedded cluster and the daemon, started in order, ended in order, and nothing left behind."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from commensald import requests
from commensald.cli.ask import ask
from commensald.cli.lazy import Failed
from commensald.cli.trainings import submit_training
from commensald.demo.scenario import TRAININGS, Scenario
from commensald.schedulers import SchedulerError
from commensald.schedulers.local.client import LocalScheduler

DAEMON = (sys.executable, "-c", "from commensald.cli.daemon import main; main()")
READY_SECONDS = 15.0
POLL_SECONDS = 0.1
DRAIN_SECONDS = 20.0
EXIT_SECONDS = 15.0
WRONG_USE = 2


class StageError(Exception):
    """A process of the demo ended or did not answer; ``text`` is the end of what it printed, ``refused`` when it was given nonsense."""

    def __init__(self, message: str, text: str = "", *, refused: bool = False) -> None:
        super().__init__(message)
        self.text = text
        self.refused = refused


class Stage:
    """Context manager around all processes. Entering submits the trainings; leaving drains, ends and reaps everything."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._cluster = LocalScheduler(scenario.cluster_socket)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._seen: set[psutil.Process] = set()

    def __enter__(self) -> Self:
        try:
            self._start("cluster", [*DAEMON, *self._scenario.cluster_arguments()])
            self._await("cluster", lambda: asyncio.run(self._cluster.snapshot()))
            self._start("daemon", [*DAEMON, "--config", str(self._scenario.config)])
            self._await("daemon", lambda: self._ask(requests.Ping()))
            for name in TRAININGS:
                submit_training(self._scenario.training_file(name), self._scenario.daemon_socket)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def check(self) -> None:
        """Raises StageError when a process has ended by itself."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                refused = process.returncode == WRONG_USE
                raise StageError(f"the {name} ended with {process.returncode}", self._tail(name), refused=refused)

    def kill(self, job: str) -> None:
        """SIGKILL every process of a job without notice; a job that has just ended is no error."""
        try:
            asyncio.run(self._cluster.kill(job))
        except SchedulerError as error:
            if "refused" not in str(error):
                raise StageError(str(error)) from error

    def drain(self) -> None:
        """Save all trainings and give all nodes back. Raises StageError when that takes too long."""
        self._ask(requests.Drain())
        deadline = time.monotonic() + DRAIN_SECONDS
        while self._pilots() > 0:
            if time.monotonic() > deadline:
                raise StageError(f"the trainings were not saved and away within {DRAIN_SECONDS:g} s", self._tail("daemon"))
            time.sleep(POLL_SECONDS)

    def close(self) -> None:
        """End the daemon, then the cluster with its jobs, then whatever is still there."""
        self._seen |= set(psutil.Process().children(recursive=True))
        for name in reversed(self._processes):
            self._terminate(self._processes[name])
        self._processes.clear()
        for process in self._seen:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(self._seen, timeout=EXIT_SECONDS)

    def _start(self, name: str, argv: list[str]) -> None:
        with self._scenario.output(name).open("wb") as output:
            self._processes[name] = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    def _await(self, name: str, answers: Callable[[], object]) -> None:
        """Wait until the process ``name`` answers. Raises StageError when it ends or stays silent."""
        deadline = time.monotonic() + READY_SECONDS
        while True:
            self.check()
            try:
                answers()
                return
            except (StageError, SchedulerError) as error:
                if time.monotonic() > deadline:
                    raise StageError(f"the {name} does not answer: {error}", self._tail(name)) from error
            time.sleep(POLL_SECONDS)

    def _pilots(self) -> int:
        status = self._ask(requests.Status()).status
        return len(status.pilots) if status is not None else 0

    def _ask(self, request: requests.Any) -> requests.Done:
        try:
            return ask(self._scenario.daemon_socket, request)
        except Failed as error:
            raise StageError(str(error), self._tail("daemon")) from error

    def _terminate(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(EXIT_SECONDS)

    def _tail(self, name: str, lines: int = 15) -> str:
        return last_lines(self._scenario.output(name), lines)


def last_lines(path: Path, lines: int) -> str:
    """The end of a text file, or nothing."""
    if not path.exists():
        return ""
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
