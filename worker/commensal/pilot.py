"""The launcher: the first process of a pilot, which fetches a training process and looks after it.

``python -m commensal.pilot --folder FOLDER --pilot UUID``. It says hello twice a second until it gets an assignment, runs it, says how it
ended, and asks again. SIGTERM and SIGUSR1 mean that the node is wanted back: it ends as soon as its training process has (the scheduler
signals every process of a job). It starts in milliseconds, so it imports neither torch nor MPI.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

import zmq

from commensal.child import NOT_STARTED, Child
from commensal.line import Line
from commensal.messages import Assignment, Dismiss, Message, PilotDone, PilotHello

HELLO_SECONDS = 0.5
ORPHAN_SECONDS = 300.0
GRACE_SECONDS = 30.0
NEWBORN_SECONDS = 1.0


class Launcher:
    """One pilot's life: ``run`` returns when the node is to be given back."""

    def __init__(self, folder: Path, pilot: str, environment: Mapping[str, str], wake: int) -> None:
        self._environment = environment
        self._hello = hello(pilot, environment)
        self._grace = float(environment.get("COMMENSAL_GRACE_SECONDS", GRACE_SECONDS))
        self._line = Line(folder, time.monotonic())
        self._wake = wake
        self._child: Child | None = None
        self._assignment: Assignment | None = None
        self._born = 0.0
        self._leave_by: float | None = None
        self.asked_to_leave = False

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """SIGTERM or SIGUSR1: the node is wanted back."""
        self.asked_to_leave = True

    def run(self) -> None:
        """Until dismissed, asked to leave, or forgotten by the daemon."""
        said = -HELLO_SECONDS
        while not self._over(now := time.monotonic()):
            self._line.tend(now)
            if self._child is None and now - said >= HELLO_SECONDS and self._line.send(self._hello):
                said = now
            self._wait()
            for message in self._line.receive():
                self._obey(message)
            self._look_after_child()
        self._line.close()

    def _over(self, now: float) -> bool:
        if self.asked_to_leave and self._leave_by is None:
            self._leave_by = now + self._grace
            if self._child is not None and now - self._born < NEWBORN_SECONDS:
                self._child.terminate()  # it may have come after the signal; an older one must not get a second one as it leaves
        if self._child is None:
            return self.asked_to_leave or now - self._line.heard > ORPHAN_SECONDS
        return self._leave_by is not None and now > self._leave_by

    def _wait(self) -> None:
        poller = zmq.Poller()
        poller.register(self._wake, zmq.POLLIN)
        self._line.watch(poller)
        if self._child is not None:
            poller.register(self._child.stderr, zmq.POLLIN)
        poller.poll(100)
        try:
            os.read(self._wake, 4096)
        except BlockingIOError:
            return

    def _obey(self, message: Message) -> None:
        if isinstance(message, Dismiss):
            self.asked_to_leave = True
            if self._child is not None:
                self._child.terminate()
        elif isinstance(message, Assignment) and self._child is None and not self.asked_to_leave:
            self._start(message)

    def _start(self, assignment: Assignment) -> None:
        try:
            self._child = Child(assignment.argv, child_environment(assignment, self._hello, self._environment), assignment.folder)
            self._assignment, self._born = assignment, time.monotonic()
        except OSError as error:
            self._report(assignment, NOT_STARTED, f"{assignment.argv[0]}: {error}")

    def _look_after_child(self) -> None:
        if self._child is None or self._assignment is None:
            return
        returncode = self._child.returncode()
        self._child.listen()
        if returncode is not None:
            self._report(self._assignment, returncode, self._child.tail() if returncode else "")
            self._child.close()
            self._child = self._assignment = None

    def _report(self, assignment: Assignment, returncode: int, tail: str) -> None:
        done = PilotDone(pilot=self._hello.pilot, member=assignment.member, training=assignment.training, returncode=returncode, tail=tail)
        self._line.send_surely(done)


def hello(pilot: str, environment: Mapping[str, str]) -> PilotHello:
    """What this pilot says of itself, from what the scheduler told it."""
    node = environment.get("COMMENSAL_NODE") or environment.get("SLURMD_NODENAME") or socket.gethostname()
    job = environment.get("SLURM_JOB_ID") or environment.get("PBS_JOBID", "")
    return PilotHello(pilot=pilot, node=node, job=job, restarts=restarts(environment))


def restarts(environment: Mapping[str, str]) -> int:
    """How often Slurm has requeued this job; PBS tells no job, so there the pilot's script sees to it."""
    return int(environment.get("SLURM_RESTART_COUNT", "0") or "0")


def child_environment(assignment: Assignment, pilot: PilotHello, environment: Mapping[str, str]) -> dict[str, str]:
    """The training process's environment: ours, the assignment's, and who it is."""
    return {
        **environment,
        **assignment.environment,
        "COMMENSAL_TRAINING": assignment.training,
        "COMMENSAL_MEMBER": assignment.member,
        "COMMENSAL_PILOT": pilot.pilot,
        "COMMENSAL_FOLDER": assignment.folder,
        "COMMENSAL_NODE": pilot.node,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of ``python -m commensal.pilot``."""
    parser = argparse.ArgumentParser(prog="python -m commensal.pilot", description="Run training processes in one node.")
    parser.add_argument("--folder", type=Path, required=True, help="where coordinator.json and commensal.key are")
    parser.add_argument("--pilot", required=True, help="this pilot's uuid")
    options = parser.parse_args(arguments)
    if restarts(os.environ) >= 1:
        return 0
    wake, woken = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    launcher = Launcher(options.folder, options.pilot, dict(os.environ), wake)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, launcher.on_signal)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    launcher.run()
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # The node is wanted: taking the interpreter down in order would only take time.
    os._exit(code)
