"""The fake without a process: commands typed at a pure cluster, at times the test names, and MOM's word given by hand."""

from __future__ import annotations

import json
from typing import Any

from fakepbs.cluster import Cluster
from fakepbs.programs import Programs
from fakepbs.protocol import Reply, Request
from fakepbs.site import Queue, Site

START = 1_796_000_000.0


class Stand:
    """Two nodes of four cpus with the queues of the captured site; ``orders`` is what MOM was told."""

    def __init__(self, preempt_order: str = "R") -> None:
        queues = {"workq": Queue(), "primaryq": Queue(priority=200), "scavq": Queue(priority=10, kill_delay=15)}
        self.site = Site(nodes={"pbs-m1": 4, "pbs-m2": 4}, server="pbs-s", queues=queues, preempt_order=preempt_order)
        self.cluster = Cluster(self.site)
        self.now, self.orders = START, [""] * 0
        self._programs = Programs(self.cluster, lambda job, name: self.orders.append(f"{name} {job}"))

    def reply(self, program: str, *argv: str, script: str | None = "true\n") -> Reply:
        """What a command answers; the scheduler runs after it."""
        environment = {"HOME": "/home/alice", "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"}
        asked = Request(program=program, argv=list(argv), folder="/scratch", user="alice", environment=environment, script=script)
        answer = self._programs.answer(asked, self.now)
        self.turn()
        return answer

    def ask(self, program: str, *argv: str) -> str:
        """What a command prints when all is well."""
        answer = self.reply(program, *argv)
        assert (answer.code, answer.errors) == (0, "")
        return answer.out

    def qsub(self, *argv: str) -> str:
        """The id of the job."""
        return self.ask("qsub", *argv).strip()

    def jobs(self, *argv: str) -> dict[str, dict[str, Any]]:
        """As ``qstat -f -F json`` shows them."""
        found: dict[str, dict[str, Any]] = json.loads(self.ask("qstat", "-f", "-F", "json", *argv)).get("Jobs", {})
        return found

    def turn(self, after: float = 0.0) -> None:
        """Let time pass, and the scheduler look."""
        self.now += after
        for order in self.cluster.advance(self.now):
            self.orders.append(f"{order.verb} {order.job}")
            if order.verb == "run":
                self.cluster.began(order.job, 12345)

    def ended(self, job: str, exit_status: int = 0) -> None:
        """Its last process is gone."""
        self.cluster.ended(job, exit_status, self.now)
        self.turn()
