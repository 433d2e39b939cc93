"""MASCOTS'20's autoscaler in the running daemon: between two intervals decide() may not share the nodes anew."""

from __future__ import annotations

from collections.abc import Sequence

from commensald.allocate import autoscaler
from commensald.config import AllocateSection
from commensald.decision import Demand


class Scaling:
    """Keeps who runs, who waits and when the next interval begins; times are given by the caller, on one clock."""

    def __init__(self) -> None:
        self._state = autoscaler.State()

    def hold(
        self, demands: Sequence[Demand], nodes: int, now: float, config: AllocateSection
    ) -> tuple[tuple[Demand, ...], tuple[str, ...]]:
        """``demands`` as decide() may answer them now, and the trainings that are rejected; ``nodes`` are all that can be shared."""
        if not config.autoscale:
            self._state = autoscaler.State()
            return tuple(demands), ()
        active = {each.training: each for each in demands if each.active}
        arrived, finished = autoscaler.news(self._state, tuple(active))
        rules = autoscaler.Rules(interval_seconds=config.autoscale_seconds, drop=config.autoscale_rejects)
        self._state, decisions = autoscaler.step(now, self._state, arrived, finished, demands=active, nodes=nodes, rules=rules)
        return autoscaler.pinned(self._state, demands), decisions.rejected
