"""The embedded cluster's pure core: time is an argument, effects are answers.

Callers tell it what happened (``submit``, ``cancel``, ``ended``, ``set_node``, ``reserve``), then ask ``advance(now)`` what to do
and ``next_event()`` when to ask again. The server gives it the real clock and real processes, replay a virtual clock.

Primary jobs are scheduled by EASY backfill (Lifka 1995; Mu'alem and Feitelson, IEEE TPDS 12(6), 2001): in order of priority
until one does not fit; that head job gets the first moment that fits by the limits of what runs, and a later job starts now only
if it ends by then or leaves the head's nodes alone. Pilots take what is left. A primary job's nodes are assigned as if there were
no pilots; pilots found on them get SIGTERM at once, SIGKILL at the end of grace, and the job starts when the last is gone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from commensald.cluster import Reservation
from commensald.schedulers.local.entry import Entry
from commensald.schedulers.local.jobs import (
    Action,
    Assign,
    Drop,
    JobSpec,
    Kill,
    Policy,
    Reason,
    RefusedError,
    Signal,
    Start,
)
from commensald.schedulers.local.plan import Planned, Profile


class Core:
    """Nodes, jobs, reservations, and the rules between them."""

    def __init__(self, nodes: Sequence[str], policy: Policy) -> None:
        self.nodes = tuple(nodes)
        self.policy = policy
        self.jobs: dict[str, Entry] = {}
        self.down: set[str] = set()
        self.reservations: dict[str, Reservation] = {}
        self.head: Planned | None = None
        """The first pending primary job's planned start and the nodes held for it, as of the last ``advance``."""
        self.primary_on: dict[str, str] = {}
        self.pilot_on: dict[str, str] = {}
        self._actions: list[Action] = []
        self._submitted = 0

    # What happened

    def submit(self, spec: JobSpec, now: float) -> None:
        """Queue a job. Raises :class:`RefusedError` for one that could never run here."""
        if not 1 <= spec.node_count <= len(self.nodes):
            raise RefusedError(f"job {spec.id} asks for {spec.node_count} nodes, the cluster has {len(self.nodes)}")
        if spec.node is not None and spec.node not in self.nodes:
            raise RefusedError(f"job {spec.id} asks for node {spec.node!r}, which is not in the cluster")
        if spec.time_limit is not None and not spec.time_limit > 0:
            raise RefusedError(f"job {spec.id} has a time limit of {spec.time_limit} s: a limit is above 0, or null for none")
        if spec.id in self.jobs:
            raise RefusedError(f"job {spec.id} is already in the cluster")
        if spec.pilot is not None:
            spec = msgspec.structs.replace(spec, tier=0, priority=0.0)
        self.jobs[spec.id] = Entry(spec, self._submitted, now, self.policy.limit(spec.time_limit))
        self._submitted += 1

    def cancel(self, job: str, now: float) -> None:
        """End a job; one that is unknown or gone is no error."""
        entry = self.jobs.get(job)
        if entry is None:
            return
        if entry.started is None:
            self._release(entry)
            del self.jobs[job]
            self._actions.append(Drop(job=job, reason=Reason.CANCEL))
        else:
            self._terminate(entry, Reason.CANCEL, now, self.policy.kill_wait_seconds)

    def ended(self, job: str) -> None:
        """The last process of the job is gone: its nodes are free."""
        self._release(self.jobs.pop(job))

    def reserve(self, reservation: Reservation) -> None:
        """Add a reservation, or replace the one of that name: jobs that run stay, pilots leave its nodes when it begins."""
        unknown = reservation.nodes - set(self.nodes)
        if unknown:
            raise RefusedError(f"reservation {reservation.name!r}: no such node: {', '.join(sorted(unknown))}")
        self.reservations[reservation.name] = reservation

    def set_node(self, node: str, *, up: bool) -> None:
        """Bring a node up or down; its jobs are killed, and a job that waits for it goes back to the queue."""
        if node not in self.nodes:
            raise RefusedError(f"no such node: {node!r}")
        if up:
            self.down.discard(node)
            return
        self.down.add(node)
        for held in (self.primary_on, self.pilot_on):
            if node in held:
                self._fail(self.jobs[held[node]])

    # What to do

    def next_event(self, now: float) -> float | None:
        """The next moment at which ``advance`` has something to do unless told of something before; ``None``: never."""
        moments = [at for entry in self.jobs.values() for at in entry.moments()]
        moments += [at for r in self.reservations.values() for at in (r.start, r.end) if at is not None and at > now]
        return min(moments, default=None)

    def advance(self, now: float) -> list[Action]:
        """Everything that is due at ``now``, in the order in which to do it."""
        self._forget_reservations(now)
        for entry in list(self.jobs.values()):
            self._expire(entry, now)
        self._claim_reserved(now)
        self._schedule_primaries(now)
        self._schedule_pilots(now)
        self._start(now)
        actions, self._actions = self._actions, []
        return actions

    def plan(self, now: float) -> list[Planned]:
        """Planned starts of the pending primary jobs, in order, each behind those before it (``squeue --start``)."""
        profile, planned = self._profile(now), []
        for entry in self.pending(pilots=False)[: self.policy.plan_depth]:
            found = profile.earliest(entry.spec.node_count, entry.seconds, now)
            if found is not None:
                start, nodes = found
                profile.occupy(nodes, start + entry.seconds)
                planned.append(Planned(job=entry.spec.id, start=start, nodes=nodes))
        return planned

    def pending(self, *, pilots: bool) -> list[Entry]:
        """The jobs without nodes, in the order of the queue: pilots, or primary jobs."""
        waiting = (e for e in self.jobs.values() if e.assigned is None and (e.spec.pilot is not None) == pilots)
        return sorted(waiting, key=lambda entry: entry.rank)

    def reserved(self, now: float) -> dict[str, str]:
        """Node -> name of the reservation that holds it now."""
        return {node: r.name for r in self.reservations.values() if r.start <= now for node in r.nodes}

    # How

    def _profile(self, now: float) -> Profile:
        order = self.nodes
        if self.policy.slurm_like:
            order = tuple(sorted(order, key=lambda node: node in self.pilot_on))
        free_at = dict.fromkeys((node for node in order if node not in self.down), now)
        later = math.nextafter(now, math.inf)
        for entry in self.jobs.values():
            if entry.assigned is not None and entry.spec.pilot is None:
                free_at.update(dict.fromkeys(free_at.keys() & set(entry.nodes), max(later, entry.expected_end)))
        return Profile(free_at, self.reservations.values())

    def _schedule_primaries(self, now: float) -> None:
        self.head = None
        queue = self.pending(pilots=False)
        if not queue:
            return
        profile = self._profile(now)
        free = len(profile.usable(now, 0.0))
        for entry in queue:
            nodes = self._fitting(profile, entry, now) if entry.spec.node_count <= free else []
            if nodes:
                free -= len(nodes)
                profile.occupy(nodes, now + entry.seconds)
                self._assign(entry, tuple(nodes), now)
            elif self.head is None:
                self.head = self._planned(profile, entry, now)

    def _fitting(self, profile: Profile, entry: Entry, now: float) -> list[str]:
        """The nodes on which the job may start now; none when there are too few."""
        nodes = profile.usable(now, entry.seconds, self._held(entry, now))
        return nodes[: entry.spec.node_count] if len(nodes) >= entry.spec.node_count else []

    def _planned(self, profile: Profile, entry: Entry, now: float) -> Planned:
        found = profile.earliest(entry.spec.node_count, entry.seconds, now)
        start, nodes = found or (math.inf, ())
        return Planned(job=entry.spec.id, start=start, nodes=nodes)

    def _held(self, entry: Entry, now: float) -> Sequence[str]:
        """The nodes a backfilled job must leave alone: the head's, unless it ends by the head's start."""
        if self.head is None or now + entry.seconds <= self.head.start:
            return ()
        return self.head.nodes

    def _schedule_pilots(self, now: float) -> None:
        queue = self.pending(pilots=True)
        if not queue:
            return
        closes = self._closes(now)
        for entry in queue:
            limit = now + entry.seconds if self.policy.slurm_like else -math.inf
            fitting = [node for node in closes if entry.spec.node in (None, node) and closes[node] >= limit]
            if fitting:
                node = max(fitting, key=lambda node: closes[node])
                del closes[node]
                self._assign(entry, (node,), now)

    def _closes(self, now: float) -> dict[str, float]:
        """Idle node -> the first planned start or reservation that claims it."""
        taken = self.primary_on.keys() | self.pilot_on.keys() | self.down | self.reserved(now).keys()
        profile = self._profile(now)
        closes = {node: profile.closes(node, now) for node in self.nodes if node not in taken}
        for planned in self.plan(now):
            closes.update((node, min(planned.start, closes[node])) for node in planned.nodes if node in closes)
        return closes

    def _assign(self, entry: Entry, nodes: tuple[str, ...], now: float) -> None:
        entry.nodes, entry.assigned = nodes, now
        self._actions.append(Assign(job=entry.spec.id, nodes=nodes))
        held = self.primary_on if entry.spec.pilot is None else self.pilot_on
        held.update((node, entry.spec.id) for node in nodes)
        if entry.spec.pilot is None:
            self._preempt(nodes, now)

    def _preempt(self, nodes: Sequence[str], now: float) -> None:
        for pilot in {self.pilot_on[node]: None for node in nodes if node in self.pilot_on}:
            entry = self.jobs[pilot]
            if entry.preempted_at is None:
                entry.preempted_at = now
                self._terminate(entry, Reason.PREEMPT, now, self.policy.grace_seconds)

    def _terminate(self, entry: Entry, reason: Reason, now: float, wait: float) -> None:
        """Tell a running job to end, and set when it is killed; a job already told so is killed no later for it."""
        preempt = reason is Reason.PREEMPT
        if entry.reason is None:
            signal = self.policy.preempt_signal if preempt else "TERM"
            self._actions.append(Signal(job=entry.spec.id, signal=signal, reason=reason))
            entry.reason = reason
        kill_at = now + wait
        if preempt and self.policy.preempt_kill_wait_seconds > 0:
            entry.term_at, kill_at = kill_at, kill_at + self.policy.preempt_kill_wait_seconds
        if preempt:
            kill_at = min(kill_at, entry.expected_end + self.policy.kill_wait_seconds)
        entry.kill_at = kill_at if entry.kill_at is None else min(kill_at, entry.kill_at)

    def _expire(self, entry: Entry, now: float) -> None:
        if entry.started is None:
            return
        if entry.reason is None and now >= entry.expected_end:
            self._terminate(entry, Reason.LIMIT, now, self.policy.kill_wait_seconds)
        if entry.term_at is not None and now >= entry.term_at:
            entry.term_at = None
            self._actions.append(Signal(job=entry.spec.id, signal="TERM", reason=Reason.GRACE))
        if entry.kill_at is not None and now >= entry.kill_at:
            entry.kill_at, entry.term_at = math.inf, None
            reason = Reason.GRACE if entry.preempted_at is not None else entry.reason
            self._actions.append(Kill(job=entry.spec.id, reason=reason or Reason.LIMIT))

    def _fail(self, entry: Entry) -> None:
        if entry.started is None:
            self._release(entry)
            entry.nodes, entry.assigned = (), None
        else:
            entry.reason, entry.kill_at = entry.reason or Reason.NODE_FAIL, math.inf
            self._actions.append(Kill(job=entry.spec.id, reason=Reason.NODE_FAIL))

    def _claim_reserved(self, now: float) -> None:
        self._preempt(sorted(self.reserved(now)), now)

    def _forget_reservations(self, now: float) -> None:
        self.reservations = {r.name: r for r in self.reservations.values() if r.end is None or r.end > now}

    def _start(self, now: float) -> None:
        for entry in sorted((e for e in self.jobs.values() if e.assigned is not None and e.started is None), key=lambda e: e.rank):
            if entry.spec.pilot is None and any(node in self.pilot_on for node in entry.nodes):
                continue
            entry.started = now
            end = None if entry.limit is None else now + entry.limit
            self._actions.append(Start(job=entry.spec.id, nodes=entry.nodes, end=end))

    def _release(self, entry: Entry) -> None:
        held = self.primary_on if entry.spec.pilot is None else self.pilot_on
        for node in entry.nodes:
            del held[node]
