"""Forecast: from a snapshot to windows, the holes a pilot may fill."""

from __future__ import annotations

from collections.abc import Sequence

from commensald.cluster import Node, Snapshot
from commensald.forecast.claims import Claim, Holders, holders
from commensald.forecast.plan import first_claims, plan
from commensald.forecast.survival import Survival, fit
from commensald.forecast.windows import Forecast, Window, WindowRow, rows
from commensald.harvest import FLAGS, Harvest, schedulable
from commensald.ledger import Fragment

__all__ = ["Forecast", "Window", "WindowRow", "make_forecast", "rows"]

OPENS_WITHIN_SECONDS = 3_600.0
"""Windows that open later than this are not listed: what frees them is a time limit, which is rarely reached."""


def make_forecast(
    snapshot: Snapshot,
    owner: str,
    fragments: Sequence[Fragment],
    now: float,
    survival: Survival | None = None,
) -> Forecast:
    """Every node that is idle, held by a pilot of ``owner``, or free within the hour, with its planned close and survival.

    ``fragments`` are this cluster's idle fragments; those that still last give each node's age. A fitted ``survival`` saves the fit.
    """
    model = survival or fit(fragments, now)
    present = holders(snapshot, owner, now)
    claims = first_claims(plan(snapshot, owner, now))
    ages = {each.node: now - each.began for each in fragments if each.ended is None}
    windows = (_window(node, present, claims.get(node.name), model, ages.get(node.name, 0.0)) for node in snapshot.nodes)
    return Forecast(windows=tuple(each for each in windows if each is not None), made=now)


def _window(node: Node, present: Holders, claim: Claim | None, model: Survival, age: float) -> Window | None:
    if node.name not in present.open:
        return _later(node, present, claim)
    why = "nothing planned" if claim is None else claim.reason
    return Window(
        node=node.name,
        opens=present.at,
        closes=None if claim is None else claim.start,
        reason=f"{why}; {model.source}",
        claimed_by=None if claim is None else claim.by,
        survival=model.curve(age, len(present.open)),
        held=node.name in present.held,
    )


def _later(node: Node, present: Holders, claim: Claim | None) -> Window | None:
    opens = present.free_from[node.name]
    if not _will_open(node, opens - present.at) or (claim is not None and claim.start <= opens):
        return None
    return Window(
        node=node.name,
        opens=opens,
        closes=None if claim is None else claim.start,
        reason="free when the running job ends" if claim is None else claim.reason,
        claimed_by=None if claim is None else claim.by,
    )


def _will_open(node: Node, seconds: float) -> bool:
    usable = all(FLAGS.get(flag, Harvest.LEAVE) >= Harvest.STAY for flag in node.flags)
    return usable and schedulable(node) and 0 < seconds <= OPENS_WITHIN_SECONDS
