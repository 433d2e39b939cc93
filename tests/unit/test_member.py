"""A member's side of membership, word by word."""

from __future__ import annotations

from commensal.member import Member, Words
from commensal.messages import Commit, Generation, Propose, Seat, Welcome


def propose(number: int, *members: str) -> Propose:
    seats = tuple(Seat(member=member, address=f"{member}:1", speed=1.0) for member in members)
    return Propose(generation=Generation(1, number), seats=seats, nonce="")


def test_a_commit_that_comes_while_the_state_is_moved_is_kept() -> None:
    """The next newcomer's ring may be formed before this one's has its state: dropped, it would never be switched to."""
    first, second, third = propose(1, "a"), propose(2, "a", "b"), propose(3, "a", "b", "c")
    member = Member("a")
    member.receive(Welcome(incarnation=1, beat_seconds=1.0, exit_budget=1.0, orphan_limit=1.0))
    member.receive(first)
    member.receive(Commit(generation=first.generation, source="a", receivers=(), closed=0))
    member.received(0)
    member.receive(second)
    member.receive(Commit(generation=second.generation, source="a", receivers=("b",), closed=None))
    member.apply(first.generation)
    member.close(Words(1.0, 0.0, 0.0))
    assert member.ring is second
    assert member.transfer is not None
    member.receive(third)
    member.receive(Commit(generation=third.generation, source="a", receivers=("c",), closed=None))
    assert not member.ready
    member.received(1)
    assert member.words().hold == 1.0
    member.apply(second.generation)
    member.close(Words(2.0, 0.0, 0.0))
    assert member.ring is third
