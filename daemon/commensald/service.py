"""The loop: observe, forecast, decide, act.

It reconciles: each cycle compares what is wanted with what is there and acts on the difference, so a lost message or a restart heals by
itself. A scheduler that does not answer freezes decisions; the rings train on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import msgspec

from commensald import limits, reconcile, requests, waiting
from commensald.allocate.units import speedup
from commensald.cluster import Snapshot
from commensald.config import CapTable, Config
from commensald.decide import decide
from commensald.decision import Cap, Decision, Demand, Policy
from commensald.events import Emit
from commensald.fleet import Fleet
from commensald.forecast import Forecast, rows
from commensald.forecast.pilots import standing_size
from commensald.ledger import Ledger
from commensald.lives import Lives, Rings
from commensald.node_lists import node_names
from commensald.notify import notify, watchdog_seconds
from commensald.observe import Observer
from commensald.reload import merge
from commensald.scaling import Scaling
from commensald.schedulers import Scheduler
from commensald.strict import InputError

log = logging.getLogger(__name__)
CLAIM_SECONDS = 10.0
"""After somebody has left, no pilot stands by for so long: the scheduler would give it a node that a primary job waits for."""


class Service:
    """All decisions of one daemon. ``wake`` begins a cycle at once."""

    def __init__(self, config: Config, ledger: Ledger, scheduler: Scheduler, rings: Rings, owner: str, emit: Emit) -> None:
        self._config, self._ledger, self._rings, self._owner = config, ledger, rings, owner
        self._observer = Observer(scheduler, ledger, owner)
        self._fleet = Fleet(config.pilots, ledger, scheduler, owner, emit)
        self._lives = Lives(ledger, rings, config.backoff, owner, emit)
        self._policy = policy(config)
        self._scaling = Scaling()
        self._waits: dict[str, str] = {}
        self._stopped: str | None = None
        self._began = time.monotonic()
        self._next_poll = 0.0
        self.wake = asyncio.Event()

    def start(self) -> None:
        """Take up the trainings that an earlier daemon left."""
        self._lives.admit_all()

    def reconfigure(self, wanted: Config) -> tuple[str, ...]:
        """Go on with ``wanted``, as far as it may change in a running daemon; gives the keys that it takes a new start to change."""
        self._config, kept = merge(self._config, wanted)
        self._policy = policy(self._config)
        self._fleet.reconfigure(self._config.pilots)
        self._lives.reconfigure(self._config.backoff)
        self._next_poll = 0.0
        self.wake.set()
        return kept

    async def run(self, stop: asyncio.Event) -> None:
        """Cycle until ``stop`` is set."""
        stopped = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set():
                await self.cycle()
                await self._rest(stopped)
        finally:
            stopped.cancel()

    async def cycle(self) -> None:
        """One look, when it is time, and one decision, when what is known is fresh."""
        self.wake.clear()
        if time.monotonic() >= self._next_poll:
            await self._look()
            self._next_poll = time.monotonic() + max(self._config.daemon.poll_seconds, self._observer.rest_seconds())
        self._lives.look()
        self._obey_limits()
        snapshot, forecast = self._observer.snapshot, self._observer.forecast
        if self.frozen() is None and snapshot is not None and forecast is not None:
            await self._decide(snapshot, forecast)
        notify("WATCHDOG=1", f"STATUS={self._one_line()}")

    def training_failed(self, training: str, tail: str) -> None:
        """A script has ended in failure; the coordinator says so."""
        self._lives.failed(training, tail)
        self.wake.set()

    def frozen(self) -> str | None:
        """Why no decision is made, if so."""
        age = self._observer.age_seconds()
        if self._observer.failure is not None:
            return self._observer.failure
        if age is None or age > self._config.daemon.stale_seconds:
            return "what is known of the cluster is stale"
        return None

    def answer(self, request: requests.Any) -> requests.Done:
        """What the control socket asks. Raises InputError."""
        answers: dict[type, Callable[[Any], requests.Done]] = {
            requests.Ping: lambda _: requests.Done(),
            requests.Submit: lambda asked: self._change(self._lives.submit, asked.spec, asked.public_key),
            requests.Pause: lambda asked: self._change(self._lives.pause, asked.training),
            requests.Resume: lambda asked: self._change(self._lives.resume, asked.training),
            requests.Cancel: lambda asked: self._change(self._lives.cancel, asked.training),
            requests.Drain: lambda asked: self._change(self._drain, asked.undo),
            requests.Trainings: lambda _: requests.Done(trainings=self._lives.rows(self._waits)),
            requests.Status: lambda _: requests.Done(status=self._status()),
            requests.Windows: lambda _: requests.Done(windows=rows(self._known_forecast(), self._observer.now())),
        }
        return answers[type(request)](request)

    def _change(self, change: Callable[..., None], *arguments: object) -> requests.Done:
        change(*arguments)
        self.wake.set()
        return requests.Done()

    def _drain(self, undo: bool) -> None:
        self._ledger.set_draining(not undo)
        if not undo:
            self._lives.stop_all("drain")
        elif self._stopped is None:
            self._lives.resume_all()

    def _obey_limits(self) -> None:
        """Stop everything, or go on, as the limits say; a scheduler that does not answer keeps nobody from stopping."""
        section, before = self._config.limits, self._stopped
        switched_off = section.kill_switch is not None and os.path.lexists(section.kill_switch)
        self._stopped = limits.stopped(section, self._fleet.history(), time.time(), switched_off=switched_off)
        if self._stopped is not None and before is None:
            log.warning("all nodes are given back: %s", self._stopped)
            self._lives.stop_all(self._stopped)
        if self._stopped is None and before is not None:
            log.warning("nodes are taken again, over is: %s", before)
            if not self._ledger.draining():
                self._lives.resume_all()

    async def _rest(self, stopped: asyncio.Task[bool]) -> None:
        seconds = max(self._next_poll - time.monotonic(), 0.0)
        waking = asyncio.create_task(self.wake.wait())
        await asyncio.wait((waking, stopped), timeout=min(seconds, watchdog_seconds() or seconds), return_when=asyncio.FIRST_COMPLETED)
        waking.cancel()

    async def _look(self) -> None:
        snapshot = self._observer.snapshot if await self._observer.look() else None
        if snapshot is None:
            return
        for gone in await self._fleet.reconcile(snapshot, self._observer.asked, self._rings.greeted):
            self._rings.gone(gone)
        for name, job in self._fleet.jobs.items():
            seconds = reconcile.seconds_left(job, snapshot.facts.grace_seconds, self._observer.now())
            if seconds is not None:
                self._rings.deadline(name, seconds)

    async def _decide(self, snapshot: Snapshot, forecast: Forecast) -> None:
        asked = self._lives.demands(draining=self._ledger.draining() or self._stopped is not None)
        free = sum(each.open(forecast.made) for each in forecast.windows)
        demands = self._scaled(limits.capped(self._config.limits, asked), free)
        if self._config.allocate.unit == "speedup":
            demands = tuple(speedup(each) for each in demands)
        pilots, policy = self._fleet.pilots(), self._policy_now()
        decision = await asyncio.to_thread(decide, snapshot, forecast, demands, pilots, self._observer.now(), policy)
        self._rings.assign({each.training: decision.nodes.get(each.training, frozenset()) for each in demands})
        self._waits = waiting.reasons(asked, demands, decision.nodes, free)
        for note in decision.notes:
            log.warning("%s", note)
        await self._act(decision, snapshot.facts.grace_seconds)

    def _scaled(self, demands: tuple[Demand, ...], nodes: int) -> tuple[Demand, ...]:
        """As the autoscaler allows; whom it rejects is cancelled."""
        held, rejected = self._scaling.hold(demands, nodes, time.monotonic(), self._config.allocate)
        for name in rejected:
            log.warning("training %s is rejected: %d nodes are too few for all", name, nodes)
            self._lives.cancel(name)
        return held

    async def _act(self, decision: Decision, grace_seconds: float) -> None:
        at_work = self._lives.at_work()
        await self._fleet.cancel([each for each in decision.cancel if each not in at_work])
        await self._fleet.submit(decision.submit, grace_seconds)

    def _policy_now(self) -> Policy:
        """The configured policy, with what the limits leave at this moment, and nobody standing by while nodes may be claimed."""
        history, now = self._fleet.history(), time.time()
        most = self._policy.standing if self._rings.departed_seconds() > CLAIM_SECONDS else 0
        return msgspec.structs.replace(
            self._policy,
            standing=standing_size(self._observer.claims, self._observer.now(), most),
            submissions=limits.submissions(self._config.limits, history, now),
            left_alone=limits.left_alone(history, now),
        )

    def _known_forecast(self) -> Forecast:
        if self._observer.forecast is None:
            raise InputError(f"nothing is known of the cluster yet: {self._observer.failure}")
        return self._observer.forecast

    def _one_line(self) -> str:
        if self._stopped is not None:
            return f"stopped: {self._stopped}"
        frozen = self.frozen()
        return f"frozen: {frozen}" if frozen else f"{len(self._fleet.records())} pilots, {len(self._lives.at_work())} in training"

    def _status(self) -> requests.StatusReport:
        snapshot, forecast = self._observer.snapshot, self._observer.forecast
        return requests.StatusReport(
            version=version("commensal"),
            pid=os.getpid(),
            incarnation=self._ledger.incarnation(),
            owner=self._owner,
            up_seconds=time.monotonic() - self._began,
            scheduler=f"{snapshot.facts.product} {snapshot.facts.version}" if snapshot else self._config.scheduler.kind,
            snapshot_age_seconds=self._observer.age_seconds(),
            frozen=self.frozen(),
            draining=self._ledger.draining(),
            stopped=self._stopped,
            left_alone=tuple(sorted(limits.left_alone(self._fleet.history(), time.time()))),
            nodes=len(snapshot.nodes) if snapshot else 0,
            open_nodes=sum(each.open(forecast.made) for each in forecast.windows) if forecast else 0,
            pilots=self._pilot_rows(),
            trainings=self._lives.statuses(),
        )

    def _pilot_rows(self) -> tuple[requests.PilotRow, ...]:
        now, jobs = self._observer.now(), {each.uuid: each.job for each in self._fleet.records()}
        trainings = self._lives.trainings()
        return tuple(
            requests.PilotRow(
                uuid=each.uuid,
                job=jobs.get(each.uuid),
                node=each.node,
                state="leaving" if each.preempted else "running" if each.running else "pending",
                training=trainings.get(each.node or ""),
                ends_in_seconds=None if each.ends is None else max(each.ends - now, 0.0),
            )
            for each in self._fleet.pilots()
        )


def policy(config: Config) -> Policy:
    """How to decide, as configured."""
    return Policy(
        allocator=config.allocate.allocator,
        look_ahead_seconds=config.allocate.look_ahead_seconds,
        caps=tuple(_cap(each) for each in config.allocate.caps.values()),
        milp_over=config.allocate.milp_over,
        big_m=config.allocate.big_m,
        milp_seconds=config.allocate.milp_seconds,
        fair_share=config.allocate.fair_share,
        survival_aware=config.allocate.survival_aware,
        survival_cap_seconds=config.allocate.survival_cap_seconds,
        start_lag_seconds=config.pilots.start_lag_seconds,
        minimum_window_seconds=config.pilots.minimum_window_seconds,
        max_minutes=config.pilots.max_minutes,
        max_pilots=config.pilots.max_pilots,
        standing=_standing(config),
    )


def _cap(table: CapTable) -> Cap:
    nodes = None if table.nodes is None else frozenset(node_names(table.nodes))
    return Cap(most=table.most, nodes=nodes, owner=table.owner, account=table.account)


def _standing(config: Config) -> int:
    """The embedded cluster is polled so often that nobody needs to stand by."""
    default = 0 if config.scheduler.kind == "local" else 2
    return default if config.pilots.standing is None else config.pilots.standing
