"""A member's side of membership, pure: what the words of the coordinator and the events of the ring make it do.

Every method takes what happened and gives back the actions to carry out; nothing here waits, sends or kills. Two threads share one object
under a lock: the link (messages, signals, sidecars) and the trainer (steps).
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from commensal.messages import (
    Ask,
    Closed,
    Commit,
    Fence,
    Formed,
    Generation,
    Halt,
    Halted,
    Leave,
    Leaving,
    Message,
    Propose,
    Save,
    Seat,
    Settled,
    Stop,
    ToWorker,
    Welcome,
    Withdraw,
    Withdrawn,
)


class Form(msgspec.Struct, frozen=True):
    """Let a warm sidecar form this generation."""

    propose: Propose


class Kill(msgspec.Struct, frozen=True):
    """Kill every sidecar up to this generation."""

    generation: Generation


class Drop(msgspec.Struct, frozen=True):
    """Kill the sidecar of this one generation."""

    generation: Generation


class Probe(msgspec.Struct, frozen=True):
    """Find out which of these members can be reached, then send Withdrawn."""

    generation: Generation
    seats: tuple[Seat, ...]


class Send(msgspec.Struct, frozen=True):
    """Send this to the coordinator."""

    message: Message


class End(msgspec.Struct, frozen=True):
    """This process is fenced: discard everything and end."""

    reason: str


Action: TypeAlias = Form | Kill | Drop | Probe | Send | End


class Words(msgspec.Struct, frozen=True):
    """The control words of a step; summed over the members they are equal everywhere."""

    hold: float
    stop: float
    save: float


class Member:
    """One member: the ring it steps in, the generation that comes next, and the state it holds."""

    def __init__(self, me: str) -> None:
        self.me = me
        self.closed: int | None = None
        self.settled = 0
        self.offers = 0
        self.ring: Propose | None = None
        """The generation in use; ``None`` outside of a ring."""
        self.transfer: Commit | None = None
        """Set from entering a generation until its state has been moved."""
        self.next: Propose | None = None
        self.commit: Commit | None = None
        """The switch that is due; the hold word says that this member has it."""
        self.highest = Generation(0, 0)
        self.incarnation = 0
        self.leaving = False
        self.others_stay = False
        self.stop: Stop | None = None
        self.save = False
        self.stopped = False
        self.left = False
        self._formed = False
        self._applying = False
        self._deferred: Halted | None = None
        self._asked: int | None = None
        self._retired: Generation | None = None

    # ---- words of the coordinator

    def receive(self, message: ToWorker) -> list[Action]:
        """React to one message."""
        match message:
            case Welcome():
                return self._welcome(message)
            case Propose():
                return self._propose(message)
            case Commit():
                return self._commit(message)
            case Withdraw():
                return self._withdraw(message)
            case Halt():
                return self._halt(message.generation, message.reason)
            case Ask():
                self._asked = message.closed
                return self._answer()
            case Fence():
                return [End(message.reason)]
            case _:
                self._note(message)
                return []

    def _note(self, message: ToWorker) -> None:
        match message:
            case Settled():
                self.settled = max(self.settled, message.closed)
            case Stop():
                self.stop = message
            case Save():
                self.save = True
            case Leave():
                self.others_stay = True
            case _:
                pass

    def _welcome(self, message: Welcome) -> list[Action]:
        if message.incarnation <= self.incarnation:
            return []
        self.incarnation = message.incarnation
        # A proposal of a daemon that is gone will never be committed.
        return self._drop() if self.commit is None else []

    def _propose(self, propose: Propose) -> list[Action]:
        if propose.generation <= self.highest or self.commit is not None:
            return []
        actions = self._drop()
        self.highest, self.next, self._formed = propose.generation, propose, False
        return [*actions, Form(propose)] if self._seated(propose) else actions

    def _commit(self, commit: Commit) -> list[Action]:
        if self.next is None or commit.generation != self.next.generation:
            return []
        if self.ring is None:
            self._enter(self.next, commit)
        elif commit.closed is None:
            self.commit = commit
        return []

    def _withdraw(self, message: Withdraw) -> list[Action]:
        gone = Send(Withdrawn(member=self.me, generation=message.generation))
        if self.next is None or self.next.generation != message.generation or self.commit is not None:
            return [gone]
        seats = tuple(seat for seat in self.next.seats if seat.member != self.me) if message.probe else ()
        return [*self._drop(), Probe(message.generation, seats) if seats else gone]

    def _halt(self, generation: Generation, reason: str) -> list[Action]:
        if self.ring is not None and self.ring.generation > generation:
            return []
        self.highest = max(self.highest, generation)
        if self._applying:
            self._deferred = Halted(member=self.me, generation=self.highest, closed=self.closed, reason=reason)
            return []
        return self._fall_out(reason)

    def _fall_out(self, reason: str) -> list[Action]:
        self.ring = self.next = self.transfer = self.commit = None
        self.stopped = False
        return [Kill(self.highest), Send(Halted(member=self.me, generation=self.highest, closed=self.closed, reason=reason))]

    def _drop(self) -> list[Action]:
        if self.next is None:
            return []
        generation, self.next = self.next.generation, None
        return [Drop(generation)]

    def _seated(self, propose: Propose) -> bool:
        return any(seat.member == self.me for seat in propose.seats)

    def _enter(self, propose: Propose, commit: Commit) -> None:
        self.ring, self.transfer = propose, commit
        self.next = self.commit = None

    def _answer(self) -> list[Action]:
        if self._asked is None or self.closed is None or self.closed < self._asked:
            return []
        asked, self._asked = self._asked, None
        return [Send(Closed(member=self.me, generation=self.highest, closed=asked))]

    # ---- events of the ring

    def formed(self, generation: Generation) -> list[Action]:
        """The sidecar has formed a generation."""
        if self.next is None or self.next.generation != generation or self._formed:
            return []
        self._formed = True
        return [Send(Formed(member=self.me, generation=generation, offers=self.offers))]

    def broken(self, generation: Generation, reason: str) -> list[Action]:
        """The sidecar of a generation is dead, or its sums cannot be trusted."""
        if self.ring is not None and self.ring.generation == generation:
            return self._halt(self.highest, reason)
        if self.next is None or self.next.generation != generation:
            return []
        if self.commit is not None:
            return self._halt(self.highest, reason)
        return [*self._drop(), Send(Withdrawn(member=self.me, generation=generation))]

    def leave(self, reason: str, seconds: float, save_seconds: float) -> list[Action]:
        """A signal or a deadline asks this member to leave."""
        self.leaving = True
        return [Send(Leaving(member=self.me, reason=reason, seconds=seconds, save_seconds=save_seconds))]

    # ---- the trainer's steps

    @property
    def ready(self) -> bool:
        """A step may be run."""
        return self.ring is not None and self.transfer is None and not self.stopped and not self.left

    def words(self) -> Words:
        """What this member says in the step in flight."""
        return Words(float(self.commit is not None), float(self.leaving or self.stop is not None), float(self.save))

    def received(self, closed: int) -> list[Action]:
        """The state of the generation just entered is in place."""
        self.closed, self.transfer = closed, None
        return self._answer()

    def apply(self, generation: Generation) -> bool:
        """Everything of the step has arrived from ``generation``: may it be applied? From here to :meth:`close` nothing interrupts."""
        self._applying = self.ready and self.ring is not None and self.ring.generation == generation
        return self._applying

    def close(self, sums: Words) -> list[Action]:
        """The step has been applied. The sums are the same on all members, and so is what follows from them."""
        assert self.ring is not None
        assert self.closed is not None
        size = len(self.ring.seats)
        self.closed += 1
        self._applying = False
        if sums.save == size:
            self.save = False
        actions = [*self._retire(), *self._answer()]
        if self._deferred is not None:
            reason, self._deferred = self._deferred.reason, None
            return [*actions, *self._fall_out(reason)]
        if sums.stop == size:
            self.stopped = True
            return [*actions, *self.settle()]
        if sums.hold == size and self.commit is not None and self.next is not None:
            self._switch(self.next, self.commit)
        return actions

    def _retire(self) -> list[Action]:
        # A neighbour may still be receiving the last words of the old ring; that a step of the new one closed shows that all are through.
        generation, self._retired = self._retired, None
        return [Drop(generation)] if generation is not None else []

    def settle(self) -> list[Action]:
        """Tell the coordinator what is closed, because no further step will."""
        if self.closed is None:
            return []
        return [Send(Closed(member=self.me, generation=self.highest, closed=self.closed))]

    def _switch(self, propose: Propose, commit: Commit) -> None:
        assert self.ring is not None
        self._retired = self.ring.generation
        if self._seated(propose):
            self._enter(propose, commit)
        else:
            self.left = True
            self.next = self.commit = None
