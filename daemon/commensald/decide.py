"""decide(): one pure function from what is known to what is wanted.

No clock, no file, no socket: the daemon calls it on the real cluster, replay on a recorded one, the demo on an embedded one.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from commensald.allocate import caps
from commensald.allocate.choice import Shared, allocator, share
from commensald.allocate.placing import lasting, own
from commensald.cluster import PILOT_TAG, Snapshot
from commensald.decision import Decision, Demand, Pilot, Policy, Request
from commensald.forecast.pilots import aimed, longest, standing
from commensald.forecast.windows import Forecast, Window
from commensald.harvest import Harvest, harvest, harvestable

CONTESTED_SECONDS = 60.0
"""A pilot's node that is planned to be taken within so long counts as being taken."""

__all__ = ["Decision", "Demand", "Pilot", "Policy", "Request", "decide"]


def decide(
    snapshot: Snapshot,
    forecast: Forecast,
    demands: Sequence[Demand],
    pilots: Sequence[Pilot],
    now: float,
    policy: Policy,
) -> Decision:
    """Share the nodes of running pilots among the active trainings, aim pilots at idle nodes, give up pilots that serve nobody.

    Each owner's pilots serve that owner's trainings; idle nodes go to owners in the order of their names.
    """
    seen = _Seen(snapshot, forecast, pilots, now, policy)
    nodes: dict[str, frozenset[str]] = {each.training: frozenset() for each in demands}
    submit: list[Request] = []
    cancel: list[str] = []
    notes: list[str] = []
    for owner in sorted({each.owner for each in demands} | {each.owner for each in pilots}):
        theirs = _Owner(owner, seen, demands, pilots)
        shared = theirs.share()
        nodes |= shared.nodes
        submit += theirs.submit(submit)
        cancel += theirs.given_up
        notes += filter(None, [shared.note])
        seen.policy = msgspec.structs.replace(policy, caps=caps.left(policy.caps, demands, nodes))
    return Decision(submit=tuple(submit), cancel=tuple(sorted(cancel)), nodes=nodes, notes=tuple(notes))


class _Seen:
    """The cluster, indexed by node."""

    def __init__(self, snapshot: Snapshot, forecast: Forecast, pilots: Sequence[Pilot], now: float, policy: Policy) -> None:
        self.now, self.policy, self.facts = now, policy, snapshot.facts
        self.nodes = {each.name: each for each in snapshot.nodes}
        self.windows = {each.node: each for each in forecast.windows if each.open(now) and each.node in self.nodes}
        self.expected = {name: each.expected_seconds(now) for name, each in self.windows.items()}
        self._limits = {each.comment: each.time_limit for each in snapshot.jobs}
        self._targets = frozenset(each.node for each in pilots) | policy.left_alone
        self.stand_by = 0 if policy.left_alone or self.contested(pilots) else policy.standing
        self._running = {each.node: each.uuid for each in pilots if each.running}

    def contested(self, pilots: Sequence[Pilot]) -> bool:
        """Whether a primary job is taking nodes from pilots: one that stands by then would be given a node that it has just got free.

        Slurm's backfill holds no node for a job that waits for preempted ones to leave (seen with 22.05).
        """
        closes = (each.closes - self.now for each in self.windows.values() if each.held and each.closes is not None)
        return any(each.preempted for each in pilots) or any(seconds < CONTESTED_SECONDS for seconds in closes)

    def harvest(self, node: str | None) -> Harvest | None:
        """How far ``node`` may be used; ``None`` when the scheduler does not show it."""
        return harvest(self.nodes[node]) if node in self.nodes else None

    def idle(self) -> list[Window]:
        """Windows that a new pilot could fill."""
        return [each for name, each in self.windows.items() if name not in self._targets and harvestable(self.nodes[name])]

    def lasts(self, pilot: Pilot) -> bool:
        """Whether a running pilot has enough time left for a training process to begin."""
        return pilot.ends is None or pilot.ends - self.now >= self.policy.minimum_window_seconds

    def can_start(self, pilot: Pilot) -> bool:
        """Whether a pending pilot still has a chance: its node is open, and what it asked for ends before the planned close."""
        window = self.windows.get(pilot.node or "")
        if pilot.node is None:
            return True
        if window is not None and window.held:
            return self._running.get(pilot.node, pilot.uuid) == pilot.uuid  # a standing pilot may have come first
        if window is None or longest(window, self.facts, self.now, self.policy) < self.policy.minimum_window_seconds:
            return False
        limit = self._limits.get(PILOT_TAG + pilot.uuid)
        return window.closes is None or limit is None or limit <= window.closes - self.now


class _Owner:
    """One owner's trainings and pilots; ``given_up`` are the pilots to cancel, the others are live."""

    def __init__(self, owner: str, seen: _Seen, demands: Sequence[Demand], pilots: Sequence[Pilot]) -> None:
        self._owner, self._seen = owner, seen
        theirs = sorted((each for each in demands if each.owner == owner), key=lambda each: each.training)
        self._active = tuple(each for each in theirs if each.active)
        self._used = frozenset().union(*(each.nodes for each in theirs))
        self._most = sum(each.max_nodes for each in self._active)
        mine = sorted((each for each in pilots if each.owner == owner and not each.preempted), key=lambda each: each.uuid)
        self.given_up = self._give_up(mine)
        live = [each for each in mine if each.uuid not in self.given_up]
        self._standing = [each.uuid for each in live if each.node is None]
        self._live = [each for each in live if each.node is not None]
        self._available = frozenset(each.node for each in self._live if each.running and each.node and self._stays(each))
        held = own(self._active, self._available)
        self._held = [len(held[each.training]) for each in self._active]
        if seen.policy.survival_aware:
            self._active = lasting(self._active, held, seen.expected, seen.policy.survival_cap_seconds)

    def _stays(self, pilot: Pilot) -> bool:
        allowed = self._seen.harvest(pilot.node)
        return allowed is not None and allowed >= Harvest.STAY and (pilot.node in self._used or self._seen.lasts(pilot))

    def _give_up(self, pilots: Sequence[Pilot]) -> tuple[str, ...]:
        """Pilots without a future, then those beyond what all trainings together could hold, then those beyond an administrator's caps.

        Never one whose member is still at work: when its training gives up the node, it is one that nobody uses.
        """
        unused = [each for each in pilots if each.node not in self._used]
        lost = [each for each in unused if not self._has_future(each)]
        surplus = max(len(pilots) - len(lost) - self._most, 0)
        spare = sorted((each for each in unused if each not in lost), key=self._usefulness)
        gone = [each.uuid for each in (*lost, *spare[:surplus])]
        present = [each.node for each in pilots if each.uuid not in gone]
        over = caps.surplus(self._seen.policy.caps, self._active, present, ((each.uuid, each.node) for each in spare[surplus:]))
        return (*gone, *over)

    def _has_future(self, pilot: Pilot) -> bool:
        seen = self._seen
        return seen.harvest(pilot.node) is not Harvest.LEAVE and seen.lasts(pilot) if pilot.running else seen.can_start(pilot)

    def _usefulness(self, pilot: Pilot) -> tuple[bool, float, str]:
        return pilot.running, self._seen.expected.get(pilot.node or "", 0.0), pilot.uuid

    def share(self) -> Shared:
        """Training -> nodes, over the nodes whose pilots run."""
        return share(self._seen.policy, self._active, self._available, self._seen.expected)

    def submit(self, before: Sequence[Request]) -> list[Request]:
        """Aimed pilots, as many as the allocator would use if all of them and the pending ones were there, then standing ones.

        ``before`` are the requests of other owners. Standing pilots that are not wanted any more are given up.
        """
        seen, policy = self._seen, self._seen.policy
        most = self._most if policy.max_pilots is None else min(self._most, policy.max_pilots - len(before))
        room, taken = max(most - len(self._live), 0), {each.node for each in before}
        idle = aimed((each for each in seen.idle() if each.node not in taken), self._owner, seen.facts, seen.now, policy)
        best = caps.admitted(policy.caps, self._active, [each.node for each in self._live], idle)[:room]
        coming = len(self._available) + sum(not each.running for each in self._live)
        chosen = list(best[: self._useful(coming, len(best))])
        missing = self._stand_by(coming + len(chosen), room - len(chosen)) - len(self._standing)
        self.given_up += tuple(self._standing[missing:]) if missing < 0 else ()
        chosen += standing(missing, len(self._standing), self._owner, policy)
        return chosen if policy.submissions is None else chosen[: max(policy.submissions - len(before), 0)]

    def _useful(self, coming: int, more: int) -> int:
        """Of ``more`` nodes on top of ``coming``, how many the allocator would use."""
        return max(sum(self._counts(coming + more)) - coming, 0) if more > 0 else 0

    def _stand_by(self, coming: int, room: int) -> int:
        """How many standing pilots are wanted, ``room`` at most."""
        return self._useful(coming, min(self._seen.stand_by, room))

    def _counts(self, nodes: int) -> tuple[int, ...]:
        policy = self._seen.policy
        return allocator(policy)(self._active, self._held, nodes, policy.look_ahead_seconds)
