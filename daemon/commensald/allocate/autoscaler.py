"""MASCOTS'20's autoscaler: trainings are admitted, and nodes shared anew, only once an interval (research/papers.md 3.3).

Between two intervals everybody keeps what the last one gave, so that a rescale pays for itself whatever arrives. Who arrives waits for the
next interval, first come first served; if not all can run even on their smallest sizes, who came last is queued or rejected.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from commensald.allocate import batch
from commensald.decision import Demand


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """``drop``: who does not fit is rejected (the paper's with-drop mode); else it waits (no-drop).

    ``charged``: a rescale must pay for itself within an interval; in the paper it costs nothing.
    """

    interval_seconds: float = 600.0
    drop: bool = False
    charged: bool = True


class Share(msgspec.Struct, frozen=True, array_like=True):
    """What a training runs with; ``batch`` is ``None`` where it is fixed, or where there are no nodes."""

    nodes: int
    batch: int | None


class State(msgspec.Struct, frozen=True, kw_only=True):
    """``running`` in the order of admission, ``waiting`` in the order of arrival; ``due``: when the next interval begins."""

    running: Mapping[str, Share] = {}
    waiting: tuple[str, ...] = ()
    due: float | None = None


class Decisions(msgspec.Struct, frozen=True, kw_only=True):
    """What is new: shares other than before (of who was admitted, too), who was admitted, who was rejected."""

    changed: Mapping[str, Share] = {}
    admitted: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()


def step(
    now: float,
    state: State,
    arrivals: Sequence[str],
    finished: Collection[str],
    *,
    demands: Mapping[str, Demand],
    nodes: int,
    rules: Rules,
) -> tuple[State, Decisions]:
    """Note who came and went since the last call, and decide when an interval begins; the first call begins one.

    ``demands`` describe at least all who run, wait or arrive, as they are now; ``nodes`` are all that can be shared.
    """
    running = {name: share for name, share in state.running.items() if name not in finished}
    waiting = tuple(name for name in (*state.waiting, *arrivals) if name not in finished)
    if state.due is not None and now < state.due:
        return State(running=running, waiting=waiting, due=state.due), Decisions()
    admitted, left = _admit([demands[name] for name in running], [demands[name] for name in waiting], nodes)
    shares = _share([demands[name] for name in (*running, *admitted)], running, nodes, rules)
    decisions = Decisions(
        changed={name: share for name, share in shares.items() if share != running.get(name)},
        admitted=admitted,
        rejected=left if rules.drop else (),
    )
    return State(running=shares, waiting=() if rules.drop else left, due=now + rules.interval_seconds), decisions


def _admit(running: Sequence[Demand], waiting: Sequence[Demand], nodes: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Who of ``waiting`` runs from now on, and who does not; each is tried in turn, and feasible is what fits at its smallest sizes."""
    room, admitted, left = nodes - sum(batch.smallest(each) or 0 for each in running), [], []
    for each in waiting:
        size = batch.smallest(each)
        if size is not None and size <= room:
            room -= size
            admitted.append(each.training)
        else:
            left.append(each.training)
    return tuple(admitted), tuple(left)


def _share(demands: Sequence[Demand], running: Mapping[str, Share], nodes: int, rules: Rules) -> dict[str, Share]:
    held = [running[each.training].nodes if each.training in running else 0 for each in demands]
    costed = demands if rules.charged else [batch.published(each) for each in demands]
    counts = batch.counts(costed, held, nodes, rules.interval_seconds)
    return {each.training: Share(size, batch.choose(each, size)) for each, size in zip(demands, counts, strict=True)}


def news(state: State, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(arrived, finished), by who is there now and who was there before."""
    known = (*state.running, *state.waiting)
    return tuple(name for name in names if name not in known), tuple(name for name in known if name not in names)


def pinned(state: State, demands: Sequence[Demand]) -> tuple[Demand, ...]:
    """``demands`` for decide() between two intervals: nobody grows beyond its share, and who waits gets nothing."""
    return tuple(_pinned(each, state.running.get(each.training, Share(0, None)).nodes) for each in demands)


def _pinned(demand: Demand, nodes: int) -> Demand:
    return msgspec.structs.replace(demand, max_nodes=max(nodes, demand.min_nodes), active=demand.active and nodes > 0)
