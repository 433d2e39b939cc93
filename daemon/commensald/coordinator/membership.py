"""Who is in the ring of one training: a pure state machine.

It is fed the words of members, losses and ticks of a clock, each with the time, and gives back effects in the order in which they must
happen. This file takes what comes in; :mod:`transitions` changes generations, :mod:`due` decides when. The protocol is the design's:
propose, form, commit, switch after the step that all hold; after a loss halt, gather what each closed, roll forward.
"""

from __future__ import annotations

from collections.abc import Iterable

from commensal.messages import (
    Ask,
    Beat,
    Closed,
    Fence,
    Formed,
    Goodbye,
    Halted,
    Hello,
    Leave,
    Leaving,
    Message,
    Save,
    Settle,
    Stop,
    Warm,
    Withdraw,
    Withdrawn,
)
from commensald.coordinator import due, transitions
from commensald.coordinator.effects import Effect, Send
from commensald.coordinator.roster import Entry, Gathering, Proposal, Ring
from commensald.coordinator.state import State

STALL_SECONDS = 0.5
"""A pause of our own loop longer than this gives everybody one full time-out."""
LAST_HOLDERS = 10
"""So many times longer may those be silent who alone hold the state."""


class Membership(State):
    """The ring of one training."""

    # ---- what comes in

    def receive(self, message: Message, now: float) -> list[Effect]:
        """React to a word of a member."""
        name = getattr(message, "member", "")
        if isinstance(message, Hello):
            return [*self._hello(message, now), *due.advance(self, now)]
        if name not in self.members:
            # What a member of an earlier daemon had still to say comes before its Hello: only who was taken for lost is sent away.
            return [Send(name, Fence(reason="was taken for lost"))] if name in self.gone_members else []
        self.members[name].seen = now
        return [*self._react(name, message, now), *due.advance(self, now)]

    def _react(self, name: str, message: Message, now: float) -> list[Effect]:
        match message:
            case Beat():
                return self._beat(name, message, now)
            case Warm():
                return self._warm(name, message, now)
            case Formed():
                return self._formed(name, message)
            case Withdrawn():
                return self._withdrawn(name, message, now)
            case Halted():
                return self._halted(name, message, now)
            case Leaving():
                self.members[name].leaving = message
                return self.leave(name, message.reason, now)
            case Closed():
                return self._closed(name, message)
            case Settle():
                return self._settle(name, message)
            case Goodbye():
                return self._goodbye(name, message, now)
            case _:
                return []

    def _hello(self, hello: Hello, now: float) -> list[Effect]:
        if hello.member in self.gone_members:
            return [Send(hello.member, Fence(reason="was taken for lost"))]
        known = self.members.get(hello.member)
        entry = known or Entry(hello, now)
        entry.hello, entry.seen, entry.generation, entry.closed = hello, now, hello.generation, hello.closed
        self.members[hello.member] = entry
        self.changed = now
        return [] if known else [self.tell("member.hello", hello.member)]

    def _warm(self, name: str, warm: Warm, now: float) -> list[Effect]:
        entry = self.members[name]
        first = not entry.warm
        entry.warm, entry.offers = True, warm.offers
        self.changed = now
        return [self.tell("member.warm", name)] if first else []

    def _beat(self, name: str, beat: Beat, now: float) -> list[Effect]:
        entry = self.members[name]
        before, trouble = entry.closed, entry.trouble
        entry.beat(beat, now)
        if entry.trouble and not trouble:
            return [self.tell("member.trouble", name, text=entry.trouble)]
        if beat.generation is None or beat.closed is None or beat.closed == before:
            return []
        if entry.stay is not None or before is None or not self.inside(name):
            return []
        entry.stay = beat.closed
        return [self.tell("stay.began", name, now - entry.closed_at, step=beat.closed)]

    def _formed(self, name: str, formed: Formed) -> list[Effect]:
        self.quarantine.succeeded(name)
        if self.proposal is not None and self.proposal.generation == formed.generation:
            self.proposal.formed[name] = formed.offers
        return []

    def _halted(self, name: str, halted: Halted, now: float) -> list[Effect]:
        entry = self.members[name]
        entry.closed, entry.generation, entry.entered = halted.closed, None, False
        if self.halting is not None:
            if halted.generation >= self.halting.generation:
                self.halting.waiting.discard(name)
            return []
        if self.ring is not None and name in self.ring.members and halted.generation >= self.ring.generation:
            return transitions.halt(self, halted.reason, now)
        if self.proposal is not None and name in self.proposal.members and halted.generation >= self.proposal.generation:
            return transitions.halt(self, halted.reason, now)
        return []

    def _withdrawn(self, name: str, message: Withdrawn, now: float) -> list[Effect]:
        if self.probing is not None:
            self.probing.waiting.discard(name)
            if message.unreachable:
                self.probing.unreachable[name] = message.unreachable
            return []
        if self.proposal is None or self.proposal.generation != message.generation or self.proposal.committed:
            return []
        effects = self._failed_to_form([name], now)
        return [*effects, *transitions.withdraw(self, "its forming failed at " + name, now)]

    def _closed(self, name: str, message: Closed) -> list[Effect]:
        self.acknowledged[name] = max(message.closed, self.acknowledged.get(name, 0))
        return transitions.settle_up(self)

    def _settle(self, name: str, message: Settle) -> list[Effect]:
        self.acknowledged[name] = max(message.closed, self.acknowledged.get(name, 0))
        others = [other for other in (self.ring.members if self.ring else ()) if other != name]
        return [*(Send(other, Ask(closed=message.closed)) for other in others), *transitions.settle_up(self)]

    def _goodbye(self, name: str, message: Goodbye, now: float) -> list[Effect]:
        self.finished = self.finished or message.finished
        effects = self.remove(name, "member.left", "finished" if message.finished else "left")
        if self.ring is None or name not in self.ring.members:
            return effects
        switched = self.proposal is not None and self.proposal.committed and name not in self.proposal.members
        if not (switched or self.stop is not None or self.finished):
            return [*effects, *transitions.halt(self, f"{name} said goodbye", now)]
        self.ring.members = tuple(member for member in self.ring.members if member != name)
        if not self.ring.members:
            self.ring = None
            return [*effects, *self._ring_ended(now)]
        return effects

    def _ring_ended(self, now: float) -> list[Effect]:
        if not self.paused:
            self.stop = None
        return transitions.halt(self, "the ring has ended", now) if self.proposal is not None and self.proposal.committed else []

    # ---- what the daemon wants

    def leave(self, name: str, reason: str, now: float) -> list[Effect]:
        """This member is to leave the ring, or not to enter it."""
        if name not in self.members or self.members[name].out:
            return []
        self.members[name].out = True
        # Preemption often claims several nodes at once: the ring shrinks once for all of them.
        self.changed = now
        others = [member for member in self.ring_members() if not self.members[member].out]
        if self.members[name].leaving is not None and others and self.inside(name):
            return [Send(name, Leave(reason=reason))]
        return []

    def gone(self, pilot: str, now: float) -> list[Effect]:
        """Nothing of this pilot runs any more, by somebody's word who knows."""
        self.silent.discard(pilot)
        names = [name for name, entry in self.members.items() if entry.hello.pilot == pilot]
        return [effect for name in names for effect in self.lose(name, "its pilot has ended", now)] or due.advance(self, now)

    def lose(self, name: str, reason: str, now: float, silent: bool = False) -> list[Effect]:
        """This member is gone, or as good as gone: it is fenced, and its ring rolls forward without it.

        ``silent``: it may still run. A ring of which nobody is left that we can reach is not begun again from disk while it may step on.
        """
        if name not in self.members:
            return []
        if silent and self.members[name].closed is not None:
            self.silent.add(self.members[name].hello.pilot)
            self.silent_until = now + self.limits.orphan_limit
        self.gone_members.add(name)
        effects = self.remove(name, "member.lost", reason)
        if self.halting is not None:
            self.halting.waiting.discard(name)
        elif (self.ring is not None and name in self.ring.members) or (
            self.proposal is not None and self.proposal.committed and name in self.proposal.members
        ):
            effects += transitions.halt(self, f"lost {name}: {reason}", now)
        elif self.proposal is not None and name in self.proposal.members:
            effects += transitions.withdraw(self, f"lost {name}: {reason}", now)
        if self.probing is not None:
            self.probing.waiting.discard(name)
        return [*effects, Send(name, Fence(reason=reason)), *due.advance(self, now)]

    def pause(self, reason: str, save: bool, now: float) -> list[Effect]:
        """Stop after a step, with a checkpoint when ``save``; nobody starts until :meth:`resume`."""
        self.stop, self.paused = Stop(reason=reason, save=save), True
        return due.advance(self, now)

    def resume(self, now: float) -> list[Effect]:
        """Members may form rings again."""
        self.stop, self.paused = None, False
        return due.advance(self, now)

    def prefer(self, batches: tuple[int, ...], now: float) -> list[Effect]:
        """Rings of 1, 2, ... members should have these batches; one that has another is formed anew."""
        self.batches = batches
        return due.advance(self, now)

    def save(self) -> list[Effect]:
        """Ask the ring for a checkpoint."""
        return [Send(member, Save()) for member in self.ring_members()]

    def tick(self, now: float) -> list[Effect]:
        """Time has passed: declare the silent lost, end what takes too long, do what is due."""
        if now - self.ticked > STALL_SECONDS:
            self.patience = max(self.patience, now + self.limits.lost_after)
        self.ticked = now
        effects: list[Effect] = []
        if now >= self.patience:
            for name, seconds in self._silent(now).items():
                effects += self.lose(name, f"silent for {seconds:g} s", now, silent=True)
        return [*effects, *self._overdue(now), *due.advance(self, now)]

    # ---- time limits

    def _silent(self, now: float) -> dict[str, float]:
        """Members that have not been heard for too long, and how long that is.

        If they are all that hold the state, nobody waits for them and their loss would cost what is not on disk: a busy machine starves
        heartbeats more often than all die at once without their connections dropping. Then it takes ten times as long.
        """
        limit = self.limits.lost_after
        late = {name: limit for name, entry in self.members.items() if now - entry.seen > limit}
        holders = self.holders()
        if not holders or not set(holders) <= set(late):
            return late
        longer = LAST_HOLDERS * limit
        return {
            name: longer if name in holders else limit for name in late if name not in holders or now - self.members[name].seen > longer
        }

    def _overdue(self, now: float) -> list[Effect]:
        effects: list[Effect] = []
        if self.halting is not None and now >= self.halting.deadline + self._grace(self.halting):
            for name in sorted(self.halting.waiting):
                effects += self.lose(name, "did not halt", now, silent=True)
        if self.proposal is not None and not self.proposal.committed and now >= self.proposal.deadline:
            effects += self._form_timeout(self.proposal, now)
        if self.ring is not None and self._stuck(self.ring, now):
            effects += transitions.halt(self, f"no progress for {self.limits.watchdog_seconds:g} s", now)
        return effects

    def _grace(self, halting: Gathering) -> float:
        """What members have beyond the deadline when all that hold the state are yet to answer."""
        return LAST_HOLDERS * self.limits.lost_after if set(self.holders()) <= halting.waiting else 0.0

    def _form_timeout(self, proposal: Proposal, now: float) -> list[Effect]:
        late = [member for member in proposal.members if member not in proposal.formed]
        effects = self._failed_to_form(late, now)
        self.proposal = None
        self.probing = Gathering(proposal.generation, set(proposal.members), now + self.limits.lost_after, {})
        return [
            *effects,
            *(
                Send(member, Withdraw(generation=proposal.generation, reason="forming took too long", probe=True))
                for member in proposal.members
            ),
        ]

    def _stuck(self, ring: Ring, now: float) -> bool:
        entries = [self.members[member] for member in ring.members]
        progress = sum((entry.closed or 0) + entry.moved for entry in entries)
        if progress != ring.progress or not all(entry.entered for entry in entries):
            ring.progress, ring.progressed = progress, now
        return now - ring.progressed > self.limits.watchdog_seconds

    def _failed_to_form(self, names: Iterable[str], now: float) -> list[Effect]:
        banned = [name for name in names if self.quarantine.failed(name, now)]
        return [self.tell("member.quarantined", name) for name in banned]
