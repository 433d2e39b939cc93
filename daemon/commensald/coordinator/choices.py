"""Choices that the coordinator makes about members: who sends its state, who is dropped, how large a batch is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from commensal.messages import Seat


def source_of(held: Mapping[str, int | None], offers: Mapping[str, int]) -> tuple[str, int]:
    """Who starts a generation, and after how many closed steps: the most advanced survivor, else the best offer from disk.

    ``held`` are the steps in the state of each member (``None``: none), ``offers`` what each could start from. Ties go to the first name.
    """
    survivors = {member: closed for member, closed in held.items() if closed is not None}
    steps = survivors or dict(offers)
    source = min(steps, key=lambda member: (-steps[member], member))
    return source, steps[source]


def order(members: Sequence[str], source: str, inside: Sequence[str]) -> tuple[str, ...]:
    """Members by rank: the source, then who was in the ring before, then the newcomers: a lead always knows the steps before."""
    return tuple(sorted(members, key=lambda member: (member != source, member not in inside, member)))


def cover(unreachable: Mapping[str, Sequence[str]], keep_first: Sequence[str] = ()) -> frozenset[str]:
    """The smallest set of members that touches every pair of which one could not reach the other.

    Exact up to 12 suspects, greedy above. Among sets of one size the one that keeps most of ``keep_first`` is taken.
    """
    pairs = {frozenset((member, other)) for member, others in unreachable.items() for other in others if member != other}
    suspects = sorted({member for pair in pairs for member in pair}, key=lambda member: (member in keep_first, member))
    if len(suspects) > 12:
        return _greedy(pairs)
    for size in range(len(suspects) + 1):
        for chosen in combinations(suspects, size):
            if all(pair & set(chosen) for pair in pairs):
                return frozenset(chosen)
    return frozenset(suspects)


def _greedy(pairs: set[frozenset[str]]) -> frozenset[str]:
    chosen: set[str] = set()
    while pairs:
        counts: dict[str, int] = {}
        for pair in pairs:
            for member in pair:
                counts[member] = counts.get(member, 0) + 1
        worst = min(counts, key=lambda member: (-counts[member], member))
        chosen.add(worst)
        pairs = {pair for pair in pairs if worst not in pair}
    return frozenset(chosen)


def seats(members: Sequence[str], addresses: Mapping[str, str], speeds: Mapping[str, float | None]) -> tuple[Seat, ...]:
    """Seats by rank; a member whose speed is not known yet counts as the mean of the others."""
    known = [speed for member in members if (speed := speeds.get(member))]
    usual = sum(known) / len(known) if known else 1.0
    return tuple(Seat(member, addresses[member], speeds.get(member) or usual) for member in members)
