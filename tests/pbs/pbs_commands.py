"""PBS through the commands on PATH, whichever PBS that is; nothing of the fake is known here."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import time
from collections.abc import Callable
from typing import Any

SECONDS = 30.0
KILL_DELAY_SECONDS = 10.0
"""PBS's default."""


class Pbs:
    """``scavenger`` and ``primary`` are the names of two queues, below and above ``preempt_queue_prio``."""

    def __init__(self, primary: str = "primaryq", scavenger: str = "scavq") -> None:
        self.primary, self.scavenger = primary, scavenger

    def run(self, *argv: str, stdin: str = "") -> str:
        """What a command prints. Raises CalledProcessError."""
        return subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=SECONDS, check=True).stdout

    def qsub(self, script: str, *options: str) -> str:
        """The id of the job; what it prints goes nowhere."""
        return self.run("qsub", "-o", os.devnull, "-e", os.devnull, *options, stdin=script).strip()

    def jobs(self, *options: str) -> dict[str, dict[str, Any]]:
        """Everything in the queue, or what ``qstat`` shows with these options."""
        found: dict[str, dict[str, Any]] = json.loads(self.run("qstat", "-f", "-t", "-F", "json", *options)).get("Jobs", {})
        return found

    def past(self, job: str) -> dict[str, Any]:
        """One job that has ended, by itself: what others have in their variables may spoil an answer of many."""
        (found,) = self.jobs("-x", job).values()
        return found

    def past_ids(self, name: str) -> list[str]:
        """Jobs of this name, in the queue and in the server's history."""
        rows = [line.split() for line in self.run("qstat", "-x").splitlines()]
        return [row[0].partition(".")[0] for row in rows if len(row) > 1 and row[1] == name]

    def nodes(self) -> dict[str, dict[str, Any]]:
        """As ``pbsnodes`` shows them."""
        found: dict[str, dict[str, Any]] = json.loads(self.run("pbsnodes", "-a", "-F", "json"))["nodes"]
        return found

    def of(self, queue: str) -> dict[str, dict[str, Any]]:
        """The jobs of one queue."""
        return {job: table for job, table in self.jobs().items() if table["queue"] == queue}

    def running(self, queue: str) -> dict[str, str]:
        """Node -> job, of one queue."""
        found = {job: table for job, table in self.of(queue).items() if table["job_state"] == "R" and "exec_host" in table}
        return {place.partition("/")[0]: job for job, table in found.items() for place in table["exec_host"].split("+")}

    def kill_delay(self) -> float:
        """From SIGTERM to SIGKILL in the scavenger's queue."""
        table = json.loads(self.run("qstat", "-Q", "-f", "-F", "json", self.scavenger))["Queue"][self.scavenger]
        return float(table.get("kill_delay", KILL_DELAY_SECONDS))

    def ours(self, *names: str) -> list[str]:
        """Our own jobs of these names: the server may have others."""
        owner = pwd.getpwuid(os.getuid()).pw_name
        return [job for job, table in self.jobs().items() if table["Job_Name"] in names and table["Job_Owner"].partition("@")[0] == owner]

    def end(self, *names: str) -> None:
        """Delete our jobs of these names, and wait until they are gone."""
        subprocess.run(["qdel", *self.ours(*names)], timeout=SECONDS, check=False, capture_output=True)
        until(lambda: not self.ours(*names), "our jobs to be gone")

    def empty(self) -> None:
        """Delete all jobs, and wait until they are gone: for a server that is nobody else's."""
        subprocess.run(["qdel", *self.jobs()], timeout=SECONDS, check=False, capture_output=True)
        until(lambda: not self.jobs(), "the queue to be empty")


def chosen() -> Pbs:
    """The PBS on PATH, its queues named by PBS_TEST_PRIMARY and PBS_TEST_SCAVENGER."""
    return Pbs(os.environ.get("PBS_TEST_PRIMARY", "primaryq"), os.environ.get("PBS_TEST_SCAVENGER", "scavq"))


def until(what: Callable[[], bool], words: str, seconds: float = SECONDS) -> float:
    """How long it took. Raises AssertionError."""
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < seconds, f"waited {seconds:g} s for {words}"
        time.sleep(0.05)
    return time.monotonic() - began
