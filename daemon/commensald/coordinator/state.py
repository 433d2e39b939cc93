"""What the coordinator knows of one training's ring, and the few questions that everything asks of it."""

from __future__ import annotations

from commensal.messages import Stop
from commensald.coordinator import GenerationRecord, Limits
from commensald.coordinator.effects import Effect, Tell
from commensald.coordinator.quarantine import Quarantine
from commensald.coordinator.roster import Entry, Gathering, Proposal, Ring


class State:
    """Three things may be under way: a ring that steps, a proposal being formed beside it, a gathering of answers (halting, probing).

    ``record`` is what an earlier daemon announced last: its ring may still be stepping.
    """

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
        self.batches: tuple[int, ...] = ()
        """The batch for a ring of 1, 2, ... members; (): the training's smallest for any."""
        self.incarnation = incarnation
        # A training that comes back in the same life goes on counting where its last ring ended.
        self.number = record.generation.number if record is not None and record.generation.incarnation == incarnation else 0
        self.adopting = record
        self.patience = now + limits.lost_after
        """Until then nobody is lost: after a start and after a stall of our own."""
        self.changed = now
        self.ticked = now
        self.gone_members: set[str] = set()
        self.acknowledged: dict[str, int] = {}
        """Steps that each member has said to have closed, when asked."""
        self.sent_away: set[str] = set()
        self.silent: set[str] = set()
        """Pilots whose members fell silent with a state and may still be stepping where we cannot see them."""
        self.silent_until = now

    def remove(self, name: str, kind: str, reason: str) -> list[Effect]:
        """Forget a member, with an event of this kind."""
        entry = self.members.pop(name)
        self.acknowledged.pop(name, None)
        self.sent_away.discard(name)
        self.changed = self.ticked
        effects: list[Effect] = []
        if entry.stay is not None:
            effects.append(self.tell("stay.ended", name, self.ticked - entry.closed_at, entry=entry, step=entry.closed))
        return [*effects, self.tell(kind, name, entry=entry, reason=reason)]

    def batch_for(self, members: int) -> int | None:
        """The batch that a ring of so many members should have."""
        return self.batches[min(members, len(self.batches)) - 1] if self.batches else None

    def holders(self) -> list[str]:
        """Members that hold a state: those of the ring, or who survived it."""
        return list(self.ring_members()) or [name for name, entry in self.members.items() if entry.closed is not None]

    def ring_members(self) -> tuple[str, ...]:
        """Members of the ring in use, by rank."""
        return self.ring.members if self.ring is not None else ()

    def inside(self, name: str) -> bool:
        """Whether a member is of the ring in use, or of the one that is committed."""
        return name in self.ring_members() or (self.proposal is not None and self.proposal.committed and name in self.proposal.members)

    def tell(self, kind: str, name: str, ago: float = 0.0, entry: Entry | None = None, **fields: object) -> Tell:
        """An event about a member that happened ``ago`` seconds ago."""
        hello = (entry or self.members[name]).hello
        return Tell(kind, {"training": self.training, "member": name, "pilot": hello.pilot, "node": hello.node, **fields}, ago)

    def tell_training(self, kind: str, **fields: object) -> Tell:
        """An event about the training."""
        return Tell(kind, {"training": self.training, **fields})

    def tell_generation(self, proposal: Proposal, closed: int | None) -> Tell:
        """The event of a commitment."""
        hellos = [(member, self.members[member].hello) for member in proposal.members]
        members = [{"member": member, "pilot": hello.pilot, "node": hello.node} for member, hello in hellos]
        return self.tell_training("generation", generation=str(proposal.generation), members=members, closed=closed)
