"""Who is in the ring of one training: a pure state machine.

It is fed the words of members, losses and ticks of a clock, each with the time, and gives back effects in the order in which they must
happen. Three things may be under way: a ring that steps, a proposal that is being formed beside it, a gathering of answers. The protocol is
the design's: propose, form, commit, switch after the step that all hold; after a loss halt, gather what each closed, roll forward.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from commensal.messages import (
    Ask,
    Beat,
    Closed,
    Commit,
    Fence,
    Formed,
    Generation,
    Goodbye,
    Halt,
    Halted,
    Hello,
    Leave,
    Leaving,
    Message,
    Propose,
    Save,
    Settle,
    Settled,
    Stop,
    Warm,
    Withdraw,
    Withdrawn,
)
from commensald.coordinator import GenerationRecord, Limits
from commensald.coordinator.choices import cover, order, seats, source_of
from commensald.coordinator.effects import Effect, Persist, Send, Tell
from commensald.coordinator.quarantine import Quarantine
from commensald.coordinator.roster import Entry, Gathering, Proposal, Ring

STALL_SECONDS = 0.5
"""A pause of our own loop longer than this gives everybody one full time-out."""
QUIET_SECONDS = 0.5
"""After a restart a broken ring is rebuilt when nobody has come back for this long."""


class Membership:
    """The ring of one training. ``record`` is what an earlier daemon announced last: its ring may still be stepping."""

    def __init__(self, training: str, incarnation: int, limits: Limits, now: float, record: GenerationRecord | None = None) -> None:
        self.training = training
        self.limits = limits
        self.members: dict[str, Entry] = {}
        self.ring: Ring | None = None
        self.proposal: Proposal | None = None
        self.halting: Gathering | None = None
        self.probing: Gathering | None = None
        self.stop: Stop | None = None
        self.paused = False
        """The stop was asked for from outside and holds until :meth:`resume`."""
        self.finished = False
        self.settled = 0
        self.quarantine = Quarantine(limits)
        self._incarnation = incarnation
        self._number = 0
        self._adopting = record
        self._patience = now + limits.lost_after
        """Until then nobody is lost: after a start and after a stall of our own."""
        self._changed = now
        self._ticked = now
        self._gone: set[str] = set()
        self._asked: dict[str, int] = {}
        self._sent_away: set[str] = set()
        self._silent: set[str] = set()
        """Pilots whose members fell silent with a state and may still be stepping where we cannot see them."""
        self._silent_until = now

    # ---- what comes in

    def receive(self, message: Message, now: float) -> list[Effect]:
        """React to a word of a member."""
        name = getattr(message, "member", "")
        if isinstance(message, Hello):
            return [*self._hello(message, now), *self._advance(now)]
        if name not in self.members:
            # What a member of an earlier daemon had still to say comes before its Hello: only who was taken for lost is sent away.
            return [Send(name, Fence(reason="was taken for lost"))] if name in self._gone else []
        self.members[name].seen = now
        return [*self._react(name, message, now), *self._advance(now)]

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
        if hello.member in self._gone:
            return [Send(hello.member, Fence(reason="was taken for lost"))]
        known = self.members.get(hello.member)
        entry = known or Entry(hello, now)
        entry.hello, entry.seen, entry.generation, entry.closed = hello, now, hello.generation, hello.closed
        self.members[hello.member] = entry
        self._changed = now
        return [] if known else [self._tell("member.hello", hello.member)]

    def _warm(self, name: str, warm: Warm, now: float) -> list[Effect]:
        entry = self.members[name]
        first = not entry.warm
        entry.warm, entry.offers = True, warm.offers
        self._changed = now
        return [self._tell("member.warm", name)] if first else []

    def _beat(self, name: str, beat: Beat, now: float) -> list[Effect]:
        entry = self.members[name]
        before = entry.closed
        entry.beat(beat, now)
        if beat.generation is None or beat.closed is None or beat.closed == before:
            return []
        if entry.stay is not None or before is None or not self._inside(name):
            return []
        entry.stay = beat.closed
        return [self._tell("stay.began", name, now - entry.closed_at, step=beat.closed)]

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
            return self._halt(halted.reason, now)
        if self.proposal is not None and name in self.proposal.members and halted.generation >= self.proposal.generation:
            return self._halt(halted.reason, now)
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
        return [*effects, *self._withdraw("its forming failed at " + name, now)]

    def _closed(self, name: str, message: Closed) -> list[Effect]:
        self._asked[name] = max(message.closed, self._asked.get(name, 0))
        return self._settle_up()

    def _settle(self, name: str, message: Settle) -> list[Effect]:
        self._asked[name] = max(message.closed, self._asked.get(name, 0))
        others = [other for other in (self.ring.members if self.ring else ()) if other != name]
        return [*(Send(other, Ask(closed=message.closed)) for other in others), *self._settle_up()]

    def _settle_up(self) -> list[Effect]:
        """Settled is what every member of the ring has acknowledged as closed."""
        if self.ring is None or not all(member in self._asked for member in self.ring.members):
            return []
        closed = min(self._asked[member] for member in self.ring.members)
        self.settled = max(self.settled, closed)
        return [Send(member, Settled(closed=closed)) for member in self.ring.members]

    def _goodbye(self, name: str, message: Goodbye, now: float) -> list[Effect]:
        self.finished = self.finished or message.finished
        effects = self._remove(name, "member.left", "finished" if message.finished else "left")
        if self.ring is None or name not in self.ring.members:
            return effects
        switched = self.proposal is not None and self.proposal.committed and name not in self.proposal.members
        if not (switched or self.stop is not None or self.finished):
            return [*effects, *self._halt(f"{name} said goodbye", now)]
        self.ring.members = tuple(member for member in self.ring.members if member != name)
        if not self.ring.members:
            self.ring = None
            return [*effects, *self._ring_ended(now)]
        return effects

    def _ring_ended(self, now: float) -> list[Effect]:
        if not self.paused:
            self.stop = None
        return self._halt("the ring has ended", now) if self.proposal is not None and self.proposal.committed else []

    # ---- what the daemon wants

    def leave(self, name: str, reason: str, now: float) -> list[Effect]:
        """This member is to leave the ring, or not to enter it."""
        if name not in self.members or self.members[name].out:
            return []
        self.members[name].out = True
        # Preemption often claims several nodes at once: the ring shrinks once for all of them.
        self._changed = now
        others = [member for member in self._ring_members() if not self.members[member].out]
        if self.members[name].leaving is not None and others and self._inside(name):
            return [Send(name, Leave(reason=reason))]
        return []

    def gone(self, pilot: str, now: float) -> list[Effect]:
        """Nothing of this pilot runs any more, by somebody's word who knows."""
        self._silent.discard(pilot)
        names = [name for name, entry in self.members.items() if entry.hello.pilot == pilot]
        return [effect for name in names for effect in self.lose(name, "its pilot has ended", now)] or self._advance(now)

    def lose(self, name: str, reason: str, now: float, silent: bool = False) -> list[Effect]:
        """This member is gone, or as good as gone: it is fenced, and its ring rolls forward without it.

        ``silent``: it may still run. A ring of which nobody is left that we can reach is not begun again from disk while it may step on.
        """
        if name not in self.members:
            return []
        if silent and self.members[name].closed is not None:
            self._silent.add(self.members[name].hello.pilot)
            self._silent_until = now + self.limits.orphan_limit
        self._gone.add(name)
        effects = self._remove(name, "member.lost", reason)
        if self.halting is not None:
            self.halting.waiting.discard(name)
        elif (self.ring is not None and name in self.ring.members) or (
            self.proposal is not None and self.proposal.committed and name in self.proposal.members
        ):
            effects += self._halt(f"lost {name}: {reason}", now)
        elif self.proposal is not None and name in self.proposal.members:
            effects += self._withdraw(f"lost {name}: {reason}", now)
        if self.probing is not None:
            self.probing.waiting.discard(name)
        return [*effects, Send(name, Fence(reason=reason)), *self._advance(now)]

    def pause(self, reason: str, save: bool, now: float) -> list[Effect]:
        """Stop after a step, with a checkpoint when ``save``; nobody starts until :meth:`resume`."""
        self.stop, self.paused = Stop(reason=reason, save=save), True
        return self._advance(now)

    def resume(self, now: float) -> list[Effect]:
        """Members may form rings again."""
        self.stop, self.paused = None, False
        return self._advance(now)

    def save(self) -> list[Effect]:
        """Ask the ring for a checkpoint."""
        return [Send(member, Save()) for member in self._ring_members()]

    def tick(self, now: float) -> list[Effect]:
        """Time has passed: declare the silent lost, end what takes too long, do what is due."""
        if now - self._ticked > STALL_SECONDS:
            self._patience = max(self._patience, now + self.limits.lost_after)
        self._ticked = now
        effects: list[Effect] = []
        if now >= self._patience:
            for name in [name for name, entry in self.members.items() if now - entry.seen > self.limits.lost_after]:
                effects += self.lose(name, f"silent for {self.limits.lost_after:g} s", now, silent=True)
        return [*effects, *self._overdue(now), *self._advance(now)]

    # ---- time limits

    def _overdue(self, now: float) -> list[Effect]:
        effects: list[Effect] = []
        if self.halting is not None and now >= self.halting.deadline:
            for name in sorted(self.halting.waiting):
                effects += self.lose(name, "did not halt", now, silent=True)
        if self.proposal is not None and not self.proposal.committed and now >= self.proposal.deadline:
            effects += self._form_timeout(self.proposal, now)
        if self.ring is not None and self._stuck(self.ring, now):
            effects += self._halt(f"no progress for {self.limits.watchdog_seconds:g} s", now)
        return effects

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
        return [self._tell("member.quarantined", name) for name in banned]

    # ---- what is due

    def _advance(self, now: float) -> list[Effect]:
        """Do whatever the present situation asks for; at most one change of phase a call and path."""
        if self._adopting is not None:
            return self._adopt(self._adopting, now)
        effects = self._gathered(now)
        if self.halting is not None or self.probing is not None:
            return effects
        if self.proposal is not None:
            return [*effects, *self._advance_proposal(self.proposal, now)]
        if self.stop is not None or self.finished:
            return [*effects, *self._advance_stop(now)]
        return [*effects, *self._consider(now)]

    def _gathered(self, now: float) -> list[Effect]:
        if self.halting is not None and not self.halting.waiting:
            self.halting = None
            self._changed = now - self.limits.settle_seconds
        if self.probing is not None and (not self.probing.waiting or now >= self.probing.deadline):
            bad, self.probing = cover(self.probing.unreachable, self._ring_members()), None
            for name in bad:
                self.quarantine.ban(name, now)
            return [self._tell("member.quarantined", name, reason="others cannot reach it") for name in sorted(bad) if name in self.members]
        return []

    def _advance_proposal(self, proposal: Proposal, now: float) -> list[Effect]:
        if proposal.committed:
            if all(self.members[member].generation == proposal.generation for member in proposal.members):
                self.ring, self.proposal = Ring(proposal.generation, proposal.members, progressed=now), None
                return self._settle_up()
            return []
        unwanted = self.stop is None and any(self.members[member].out for member in proposal.members)
        if unwanted or (self.stop is not None and self.ring is not None):
            return self._withdraw("no longer wanted", now)
        return self._commit(proposal, now) if set(proposal.formed) == set(proposal.members) else []

    def _advance_stop(self, now: float) -> list[Effect]:
        """Ask everybody to stop. A state held outside of a ring is first put into one, so that it can be saved."""
        stop = self.stop or Stop(reason="finished", save=False)
        if self.ring is not None:
            untold = [member for member in self.ring.members if member not in self.ring.told]
            self.ring.told.update(untold)
            outside = set(self.members) - set(self.ring.members) if self.paused else ()
            return [*(Send(member, stop) for member in untold), *self._send_away(sorted(outside), stop.reason)]
        holders = self._holders()
        if holders and stop.save and not self.finished:
            return self._propose(holders, now, stop.reason)
        if self.paused or self.finished:
            return self._send_away(sorted(self.members), stop.reason)
        self.stop = None
        return self._consider(now)

    def _send_away(self, names: Iterable[str], reason: str) -> list[Effect]:
        fresh = [name for name in names if name not in self._sent_away]
        self._sent_away.update(fresh)
        return [Send(name, Fence(reason=reason)) for name in fresh]

    def _consider(self, now: float) -> list[Effect]:
        """Compare the ring with the members that should be in it; propose the difference once things are quiet."""
        inside = self._ring_members()
        # Who is to leave and is in no ring goes at once, unless it may hold the only state.
        idle = [
            name
            for name, entry in self.members.items()
            if entry.out and entry.generation is None and name not in inside and (inside or entry.closed is None)
        ]
        effects = self._send_away(idle, "is not needed")
        wanted = [
            name
            for name, entry in self.members.items()
            if (entry.warm or entry.closed is not None) and not entry.out and (name in inside or not self.quarantine.holds(name, now))
        ]
        holders = self._holders()
        if holders and not set(wanted) & set(holders):
            self.stop = Stop(reason="all members were asked to leave", save=True)
            return [*effects, *self._advance_stop(now)]
        if set(wanted) == set(inside) or not wanted or now - self._changed < self.limits.settle_seconds:
            return effects
        if not holders and self._silent and now < self._silent_until:
            return effects
        return [*effects, *self._propose(wanted, now, "members changed")]

    # ---- transitions

    def _propose(self, wanted: list[str], now: float, reason: str) -> list[Effect]:
        inside = self._ring_members()
        source = self._source(wanted, inside)
        members = order(wanted, source, inside)
        self._number += 1
        generation = Generation(self._incarnation, self._number)
        self.proposal = Proposal(generation, members, now + self.limits.form_timeout, {})
        entries = self.members
        places = seats(members, {m: entries[m].hello.address for m in members}, {m: entries[m].speed for m in members})
        propose = Propose(generation=generation, seats=places, nonce=f"{self.training}/{generation}")
        everybody = sorted({*members, *inside})
        return [
            self._tell_training("proposal", generation=str(generation), members=list(members), reason=reason),
            *(Send(member, propose) for member in everybody),
        ]

    def _source(self, wanted: list[str], inside: Sequence[str]) -> str:
        # A ring's members hold its state even before they have said how many steps it has.
        held: dict[str, int | None] = {name: self.members[name].closed or 0 for name in wanted if name in inside}
        return source_of(
            held or {name: self.members[name].closed for name in wanted}, {name: self.members[name].offers for name in wanted}
        )[0]

    def _commit(self, proposal: Proposal, now: float) -> list[Effect]:
        inside = self._ring_members()
        proposal.committed = True
        if self.ring is not None:
            source, closed = proposal.members[0], None
            receivers = tuple(member for member in proposal.members if member not in inside)
        else:
            held = {member: self.members[member].closed for member in proposal.members}
            source, closed = source_of(held, proposal.formed)
            receivers = tuple(member for member in proposal.members if member != source and held[member] != closed)
        commit = Commit(generation=proposal.generation, source=source, receivers=receivers, closed=closed)
        record = GenerationRecord(
            training=self.training, generation=proposal.generation, members=proposal.members, closed=closed, source=source
        )
        if self.ring is None:
            self._asked.clear()
        return [
            Persist(record),
            self._tell_generation(proposal, closed),
            *(Send(member, commit) for member in sorted({*proposal.members, *inside})),
        ]

    def _withdraw(self, reason: str, now: float) -> list[Effect]:
        if self.proposal is None:
            return []
        proposal, self.proposal = self.proposal, None
        self._changed = now - self.limits.settle_seconds
        reached = sorted({*proposal.members, *self._ring_members()} & set(self.members))
        return [Send(member, Withdraw(generation=proposal.generation, reason=reason)) for member in reached]

    def _halt(self, reason: str, now: float) -> list[Effect]:
        """Stop all sidecars and gather what each member has closed."""
        generation = Generation(self._incarnation, self._number)
        involved = {*self._ring_members(), *(self.proposal.members if self.proposal else ())} & set(self.members)
        self.halting = Gathering(generation, involved, now + max(self.limits.lost_after, 5.0), {})
        self.ring = self.proposal = None
        self._asked.clear()
        return [
            self._tell_training("halt", generation=str(generation), reason=reason),
            *(Send(name, Halt(generation=generation, reason=reason)) for name in sorted(involved)),
        ]

    def _adopt(self, record: GenerationRecord, now: float) -> list[Effect]:
        """After a restart: take over the ring that went on stepping, or rebuild it from who has come back."""
        back = [member for member in record.members if member in self.members]
        if len(back) == len(record.members) and all(self.members[m].generation == record.generation for m in back):
            self._adopting = None
            self.ring = Ring(record.generation, record.members, progressed=now)
            return [self._tell_training("adopted", generation=str(record.generation))]
        broken = any(entry.generation != record.generation and entry.closed is not None for entry in self.members.values())
        if now < self._patience and not (broken and now - self._changed >= QUIET_SECONDS):
            return []
        self._adopting = None
        self.ring = Ring(record.generation, tuple(name for name, entry in self.members.items() if entry.closed is not None))
        if not self.ring.members:
            self.ring = None
            return []
        return self._halt("the daemon restarted and the ring is not whole", now)

    # ---- small things

    def _remove(self, name: str, kind: str, reason: str) -> list[Effect]:
        entry = self.members.pop(name)
        self._asked.pop(name, None)
        self._sent_away.discard(name)
        self._changed = self._ticked
        effects: list[Effect] = []
        if entry.stay is not None:
            effects.append(self._tell("stay.ended", name, self._ticked - entry.closed_at, entry=entry, step=entry.closed))
        return [*effects, self._tell(kind, name, entry=entry, reason=reason)]

    def _holders(self) -> list[str]:
        """Members that hold a state: those of the ring, or who survived it."""
        return list(self._ring_members()) or [name for name, entry in self.members.items() if entry.closed is not None]

    def _ring_members(self) -> tuple[str, ...]:
        return self.ring.members if self.ring is not None else ()

    def _inside(self, name: str) -> bool:
        return name in self._ring_members() or (self.proposal is not None and self.proposal.committed and name in self.proposal.members)

    def _tell(self, kind: str, name: str, ago: float = 0.0, entry: Entry | None = None, **fields: object) -> Tell:
        hello = (entry or self.members[name]).hello
        return Tell(kind, {"training": self.training, "member": name, "pilot": hello.pilot, "node": hello.node, **fields}, ago)

    def _tell_training(self, kind: str, **fields: object) -> Tell:
        return Tell(kind, {"training": self.training, **fields})

    def _tell_generation(self, proposal: Proposal, closed: int | None) -> Tell:
        hellos = [(member, self.members[member].hello) for member in proposal.members]
        members = [{"member": member, "pilot": hello.pilot, "node": hello.node} for member, hello in hellos]
        return self._tell_training("generation", generation=str(proposal.generation), members=members, closed=closed)
