"""Forecast and decision in a closed loop with the embedded cluster on a virtual clock: how much of a busy cluster's idle time they fill."""

from __future__ import annotations

import itertools

import pytest

from commensald.allocate.curves import default
from commensald.cluster import Job, JobState
from commensald.decide import Demand, Pilot, Policy, decide
from commensald.forecast import make_forecast
from commensald.forecast.survival import fit
from commensald.reconcile import ours
from commensald.schedulers.local import jobs as local
from commensald.schedulers.local.core import Core
from commensald.schedulers.local.generator import generate
from commensald.schedulers.local.view import snapshot

ME = "harvester"
TICK = 0.1
EXIT_SECONDS = 0.3
POLL_TICKS = 5
PRIOR = fit((), 0.0)


class Loop:
    """A cluster that runs the project's own workload, and us in it; a pilot that is told to end takes EXIT_SECONDS."""

    def __init__(self, seed: int, size: int, seconds: float) -> None:
        self.core = Core([f"n{index}" for index in range(size)], local.Policy(grace_seconds=5.0))
        self._work = list(itertools.takewhile(lambda job: job.at < seconds, generate(seed, size)))
        self._ends: list[tuple[float, str]] = []
        self._submitted = itertools.count()
        self._arriving = 0
        self._assigned: dict[str, float] = {}
        self._nodes: dict[str, frozenset[str]] = {"a": frozenset(), "b": frozenset()}
        self.idle = self.harvested = self.delay = 0.0

    def run(self, ticks: int) -> None:
        for tick in range(ticks):
            self._advance(tick * TICK)
            if tick % POLL_TICKS == 0:
                self._decide(tick * TICK)
            self.idle += len(self.core.nodes) - len(self.core.primary_on)
            self.harvested += len(self.core.pilot_on.keys() - self.core.primary_on.keys())

    def _advance(self, now: float) -> None:
        for due in sorted(each for each in self._ends if each[0] <= now):
            self._ends.remove(due)
            if due[1] in self.core.jobs:
                self.core.ended(due[1])
        while self._arriving < len(self._work) and self._work[self._arriving].at <= now:
            job = self._work[self._arriving]
            name = f"w{self._arriving}"
            self.core.submit(local.JobSpec(id=name, name=name, owner="alice", node_count=job.node_count, time_limit=job.time_limit), now)
            self._arriving += 1
        for action in self.core.advance(now):
            self._act(action, now)

    def _act(self, action: local.Action, now: float) -> None:
        primary = action.job.startswith("w")
        if isinstance(action, local.Assign):
            self._assigned[action.job] = now
        elif isinstance(action, local.Start) and primary:
            self._ends.append((now + self._work[int(action.job[1:])].seconds, action.job))
            self.delay = max(self.delay, now - self._assigned[action.job])
        elif isinstance(action, local.Signal):
            self._ends.append((now + EXIT_SECONDS, action.job))

    def _decide(self, now: float) -> None:
        seen = snapshot(self.core, now, "1")
        pilots = [_pilot(uuid, job, self.core) for uuid, job in ours(seen, ME).items()]
        demands = [
            Demand(training=name, owner=ME, max_nodes=8, curve=default(8), stall_seconds=0.3, warmup_seconds=2.0, nodes=nodes)
            for name, nodes in self._nodes.items()
        ]
        policy = Policy(start_lag_seconds=1.0, minimum_window_seconds=3.0)
        decision = decide(seen, make_forecast(seen, ME, (), now, PRIOR), demands, pilots, now, policy)
        self._nodes = dict(decision.nodes)
        for request in decision.submit:
            uuid = f"p{next(self._submitted)}"
            assert request.node not in self.core.pilot_on.keys() | self.core.primary_on.keys()
            self.core.submit(local.JobSpec(id=uuid, name=uuid, owner=ME, time_limit=request.time_limit, pilot=uuid, node=request.node), now)
        for uuid in decision.cancel:
            self.core.cancel(uuid, now)


def _pilot(uuid: str, job: Job, core: Core) -> Pilot:
    leaving = job.preempted_at is not None or core.jobs[job.id].reason is not None
    node = job.nodes[0] if job.nodes else core.jobs[job.id].spec.node
    return Pilot(uuid=uuid, owner=ME, node=node, running=job.state is JobState.RUNNING, preempted=leaving)


@pytest.mark.parametrize("seed", [1, 2])
def test_idle_time_is_filled_and_primary_jobs_wait_only_for_one_exit(seed: int) -> None:
    loop = Loop(seed, 8, 120.0)
    loop.run(1200)
    assert loop.idle > 100
    assert loop.harvested / loop.idle >= 0.9
    assert loop.delay <= EXIT_SECONDS + 1.5 * TICK
