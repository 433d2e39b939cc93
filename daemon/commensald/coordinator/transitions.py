"""Changes of generation: propose, commit, withdraw, halt, adopt. Each does its change to the state and gives the effects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from commensal.messages import Commit, Fence, Generation, Halt, Propose, Settled, Withdraw
from commensald.coordinator import GenerationRecord
from commensald.coordinator.choices import order, seats, source_of
from commensald.coordinator.effects import Effect, Persist, Send
from commensald.coordinator.roster import Gathering, Proposal, Ring
from commensald.coordinator.state import State

QUIET_SECONDS = 0.3
"""After a restart a broken ring is rebuilt when nobody has come back for this long."""


def propose(state: State, wanted: list[str], now: float, reason: str) -> list[Effect]:
    """Let these members form the next generation; a present ring steps on meanwhile."""
    inside = state.ring_members()
    members = order(wanted, source(state, wanted, inside), inside)
    state.number += 1
    generation = Generation(state.incarnation, state.number)
    batch = state.batch_for(len(members))
    state.proposal = Proposal(generation, members, batch, now + state.limits.form_timeout, {})
    entries = state.members
    places = seats(members, {m: entries[m].hello.address for m in members}, {m: entries[m].speed for m in members})
    message = Propose(generation=generation, seats=places, nonce=f"{state.training}/{generation}", batch=batch)
    everybody = sorted({*members, *inside})
    return [
        state.tell_training("proposal", generation=str(generation), members=list(members), reason=reason),
        *(Send(member, message) for member in everybody),
    ]


def source(state: State, wanted: list[str], inside: Sequence[str]) -> str:
    """Who will give its state: one of the ring, else the most advanced survivor, else the best offer from disk."""
    # A ring's members hold its state even before they have said how many steps it has.
    held: dict[str, int | None] = {name: state.members[name].closed or 0 for name in wanted if name in inside}
    offers = {name: state.members[name].offers for name in wanted}
    giver, _ = source_of(held or {name: state.members[name].closed for name in wanted}, offers)
    return giver


def commit(state: State, proposal: Proposal) -> list[Effect]:
    """All have formed it: keep it in the ledger, then say so. From here on it can only be halted."""
    inside = state.ring_members()
    proposal.committed = True
    if state.ring is not None:
        giver, closed = proposal.members[0], None
        receivers = tuple(member for member in proposal.members if member not in inside)
    else:
        held = {member: state.members[member].closed for member in proposal.members}
        giver, closed = source_of(held, proposal.formed)
        receivers = tuple(member for member in proposal.members if member != giver and held[member] != closed)
    message = Commit(generation=proposal.generation, source=giver, receivers=receivers, closed=closed)
    record = GenerationRecord(
        training=state.training, generation=proposal.generation, members=proposal.members, closed=closed, source=giver
    )
    if state.ring is None:
        state.acknowledged.clear()
    return [
        Persist(record),
        state.tell_generation(proposal, closed),
        *(Send(member, message) for member in sorted({*proposal.members, *inside})),
    ]


def withdraw(state: State, reason: str, now: float) -> list[Effect]:
    """The proposal is off; the present ring, if any, is not touched."""
    if state.proposal is None:
        return []
    proposal, state.proposal = state.proposal, None
    state.changed = now - state.limits.settle_seconds
    reached = sorted({*proposal.members, *state.ring_members()} & set(state.members))
    return [Send(member, Withdraw(generation=proposal.generation, reason=reason)) for member in reached]


def halt(state: State, reason: str, now: float) -> list[Effect]:
    """Stop all sidecars and gather what each member has closed."""
    generation = Generation(state.incarnation, state.number)
    involved = {*state.ring_members(), *(state.proposal.members if state.proposal else ())} & set(state.members)
    state.halting = Gathering(generation, involved, now + max(state.limits.lost_after, 5.0), {})
    state.ring = state.proposal = None
    state.acknowledged.clear()
    return [
        state.tell_training("halt", generation=str(generation), reason=reason),
        *(Send(name, Halt(generation=generation, reason=reason)) for name in sorted(involved)),
    ]


def adopt(state: State, record: GenerationRecord, now: float) -> list[Effect]:
    """After a restart: take over the ring that went on stepping, or rebuild it from who has come back."""
    back = [member for member in record.members if member in state.members]
    if len(back) == len(record.members) and all(state.members[m].generation == record.generation for m in back):
        state.adopting = None
        state.ring = Ring(record.generation, record.members, progressed=now)
        return [state.tell_training("adopted", generation=str(record.generation))]
    broken = any(entry.generation != record.generation and entry.closed is not None for entry in state.members.values())
    if now < state.patience and not (broken and now - state.changed >= QUIET_SECONDS):
        return []
    state.adopting = None
    state.ring = Ring(record.generation, tuple(name for name, entry in state.members.items() if entry.closed is not None))
    if not state.ring.members:
        state.ring = None
        return []
    return halt(state, "the daemon restarted and the ring is not whole", now)


def settle_up(state: State) -> list[Effect]:
    """Settled is what every member of the ring has acknowledged as closed."""
    if state.ring is None or not all(member in state.acknowledged for member in state.ring.members):
        return []
    closed = min(state.acknowledged[member] for member in state.ring.members)
    state.settled = max(state.settled, closed)
    return [Send(member, Settled(closed=closed)) for member in state.ring.members]


def send_away(state: State, names: Iterable[str], reason: str) -> list[Effect]:
    """Fence these members, each once."""
    fresh = [name for name in names if name not in state.sent_away]
    state.sent_away.update(fresh)
    return [Send(name, Fence(reason=reason)) for name in fresh]
