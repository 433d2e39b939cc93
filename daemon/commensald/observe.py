"""What the daemon knows of the cluster: the newest snapshot, the fragments that it has watched, the forecast made of both."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Mapping

from commensald.cluster import Job, JobState, Snapshot
from commensald.forecast import Forecast, make_forecast
from commensald.forecast.pilots import RECENT_SECONDS
from commensald.forecast.survival import Survival, fit
from commensald.harvest import unknown_flags
from commensald.ledger import Fragment, Ledger
from commensald.schedulers import Scheduler, SchedulerError

log = logging.getLogger(__name__)
KEEP_SECONDS = 28 * 86_400.0
FIT_SECONDS = 60.0


class Observer:
    """Polls the scheduler. Its clock is the scheduler's: :meth:`now` goes on from the newest snapshot."""

    def __init__(self, scheduler: Scheduler, ledger: Ledger, owner: str) -> None:
        self._scheduler, self._ledger, self._owner = scheduler, ledger, owner
        self._fragments = [each for each in ledger.fragments() if each.ended is not None]
        self._lasting = {each.node: each for each in ledger.fragments() if each.ended is None}
        self.claims = [each.ended for each in self._fragments if each.claimed and each.ended is not None]
        """When primary jobs took nodes that were open, one time for each node, of the last hour."""
        self._survival: Survival | None = None
        self._fitted = 0.0
        self._reported: frozenset[str] = frozenset()
        self._seen = 0.0
        self.snapshot: Snapshot | None = None
        self.forecast: Forecast | None = None
        self.failure: str | None = "the scheduler has not been asked yet"
        self.asked = 0.0
        """When the newest snapshot was asked for, by our own clock (epoch)."""

    def age_seconds(self) -> float | None:
        """Of the newest snapshot."""
        return None if self.snapshot is None else time.monotonic() - self._seen

    def now(self) -> float:
        """The scheduler's clock."""
        return time.time() if self.snapshot is None else self.snapshot.taken + time.monotonic() - self._seen

    def rest_seconds(self) -> float:
        """How long the scheduler wants to be left alone."""
        return self._scheduler.rest_seconds()

    async def look(self) -> bool:
        """Take a snapshot and make the forecast; False when the scheduler did not answer, and then nothing has changed."""
        asked = time.time()
        try:
            self.snapshot = await self._scheduler.snapshot()
        except SchedulerError as error:
            if self.failure != str(error):
                log.warning("%s", error)
            self.failure = str(error)
            return False
        self.asked, self._seen, self.failure = asked, time.monotonic(), None
        self._report_flags(self.snapshot)
        self.forecast = await asyncio.to_thread(self._forecast, self.snapshot)
        self._follow(self.snapshot, self.forecast)
        return True

    def _forecast(self, snapshot: Snapshot) -> Forecast:
        """In a thread: on a large cluster it takes longer than the rings' heartbeats."""
        return make_forecast(snapshot, self._owner, list(self._lasting.values()), self.now(), self._model())

    def _model(self) -> Survival:
        now = self.now()
        if self._survival is None or now - self._fitted > FIT_SECONDS:
            self._fragments = [each for each in self._fragments if each.ended is not None and each.ended > now - KEEP_SECONDS]
            self._survival, self._fitted = fit([*self._fragments, *self._lasting.values()], now), now
        return self._survival

    def _follow(self, snapshot: Snapshot, forecast: Forecast) -> None:
        is_open = {each.node for each in forecast.windows if each.open(forecast.made)}
        claimed = taken_by_others(snapshot.jobs, self._owner)
        self._lasting, changed = follow(self._lasting, is_open, claimed, snapshot.taken)
        self._fragments += [each for each in changed if each.ended is not None]
        self.claims = [each for each in self.claims if each > snapshot.taken - RECENT_SECONDS]
        self.claims += [snapshot.taken for each in changed if each.claimed]
        if changed:
            self._ledger.keep_fragments(tuple(changed), snapshot.taken - KEEP_SECONDS)

    def _report_flags(self, snapshot: Snapshot) -> None:
        new = unknown_flags(snapshot.nodes) - self._reported
        if new:
            log.warning("nodes with unknown flags are left alone: %s", ", ".join(sorted(new)))
            self._reported |= new


def taken_by_others(jobs: Collection[Job], owner: str) -> frozenset[str]:
    """Nodes on which a job runs that is no pilot of ours."""
    others = (each for each in jobs if each.pilot(owner) is None and each.state is not JobState.ENDED)
    return frozenset(node for each in others for node in each.nodes)


def follow(
    lasting: Mapping[str, Fragment], is_open: Collection[str], claimed: Collection[str], at: float
) -> tuple[dict[str, Fragment], list[Fragment]]:
    """The fragments that last at ``at``, and those that began or ended since. Pure."""
    begun = [Fragment(node=node, began=at, ended=None) for node in sorted(is_open) if node not in lasting]
    ended = [
        Fragment(node=each.node, began=each.began, ended=at, claimed=each.node in claimed)
        for each in lasting.values()
        if each.node not in is_open
    ]
    still = {node: each for node, each in lasting.items() if node in is_open}
    return still | {each.node: each for each in begun}, begun + ended
