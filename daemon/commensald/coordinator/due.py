"""What the present situation asks for: after every word and tick the state is looked at as a whole."""

from __future__ import annotations

from collections.abc import Sequence

from commensal.messages import Stop
from commensald.coordinator import transitions
from commensald.coordinator.choices import cover
from commensald.coordinator.effects import Effect, Send
from commensald.coordinator.roster import Proposal, Ring
from commensald.coordinator.state import State


def advance(state: State, now: float) -> list[Effect]:
    """Do whatever the present situation asks for; at most one change of phase a call and path."""
    if state.adopting is not None:
        return transitions.adopt(state, state.adopting, now)
    effects = gathered(state, now)
    if state.halting is not None or state.probing is not None:
        return effects
    if state.proposal is not None:
        return [*effects, *advance_proposal(state, state.proposal, now)]
    if state.stop is not None or state.finished:
        return [*effects, *advance_stop(state, now)]
    return [*effects, *consider(state, now)]


def gathered(state: State, now: float) -> list[Effect]:
    """End a gathering whose answers are all there."""
    if state.halting is not None and not state.halting.waiting:
        state.halting = None
        state.changed = now - state.limits.settle_seconds
    if state.probing is not None and (not state.probing.waiting or now >= state.probing.deadline):
        bad, state.probing = cover(state.probing.unreachable, state.ring_members()), None
        for name in bad:
            state.quarantine.ban(name, now)
        return [state.tell("member.quarantined", name, reason="others cannot reach it") for name in sorted(bad) if name in state.members]
    return []


def advance_proposal(state: State, proposal: Proposal, now: float) -> list[Effect]:
    """Withdraw it, commit it, or see that its ring has taken over."""
    if proposal.committed:
        if all(state.members[member].generation == proposal.generation for member in proposal.members):
            state.ring, state.proposal = Ring(proposal.generation, proposal.members, proposal.batch, progressed=now), None
            return transitions.settle_up(state)
        return []
    unwanted = state.stop is None and any(state.members[member].out for member in proposal.members)
    if unwanted or (state.stop is not None and state.ring is not None):
        return transitions.withdraw(state, "no longer wanted", now)
    return transitions.commit(state, proposal) if set(proposal.formed) == set(proposal.members) else []


def advance_stop(state: State, now: float) -> list[Effect]:
    """Ask everybody to stop. A state held outside of a ring is first put into one, so that it can be saved."""
    stop = state.stop or Stop(reason="finished", save=False)
    if state.ring is not None:
        untold = [member for member in state.ring.members if member not in state.ring.told]
        state.ring.told.update(untold)
        outside = set(state.members) - set(state.ring.members) if state.paused else ()
        return [*(Send(member, stop) for member in untold), *transitions.send_away(state, sorted(outside), stop.reason)]
    holders = state.holders()
    if holders and stop.save and not state.finished:
        return transitions.propose(state, holders, now, stop.reason)
    if state.paused or state.finished:
        return transitions.send_away(state, sorted(state.members), stop.reason)
    state.stop = None
    return consider(state, now)


def consider(state: State, now: float) -> list[Effect]:
    """Compare the ring with the members and the batch that it should have; propose the difference once things are quiet."""
    inside = state.ring_members()
    # Who is to leave and is in no ring goes at once, unless it may hold the only state.
    idle = [
        name
        for name, entry in state.members.items()
        if entry.out and entry.generation is None and name not in inside and (inside or entry.closed is None)
    ]
    effects = transitions.send_away(state, idle, "is not needed")
    wanted = [
        name
        for name, entry in state.members.items()
        if (entry.warm or entry.closed is not None) and not entry.out and (name in inside or not state.quarantine.holds(name, now))
    ]
    wanted = _able(state, wanted, inside)
    holders = state.holders()
    if holders and not set(wanted) & set(holders):
        state.stop = Stop(reason="all members were asked to leave", save=True)
        return [*effects, *advance_stop(state, now)]
    fits = set(wanted) == set(inside) and (state.ring is None or state.ring.batch == state.batch_for(len(inside)))
    if fits or not wanted or now - state.changed < state.limits.settle_seconds:
        return effects
    # With one who does not answer no ring can form, and those who wait for it would be blamed.
    if any(now - state.members[name].seen > state.limits.lost_after for name in wanted):
        return effects
    if not holders and state.silent and now < state.silent_until:
        return effects
    return [*effects, *transitions.propose(state, wanted, now, "another batch" if set(wanted) == set(inside) else "members changed")]


def _able(state: State, wanted: list[str], inside: Sequence[str]) -> list[str]:
    """Of ``wanted`` those that can form a ring now: a newcomer whose sidecars are still starting would only use up the time for it.

    Where there is nobody else, one begins alone, for which no sidecar is needed.
    """
    able = [name for name in wanted if name in inside or state.members[name].spares or state.members[name].closed is not None]
    return able or wanted[:1]
