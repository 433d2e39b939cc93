"""What decide() sees in a replay: every node of the pool holds a running pilot, without lag and without an end (the papers' semantics).

decide() thus only shares nodes. It knows nothing of when a node will leave: no window, no plan, no survival, as in the papers.
"""

from __future__ import annotations

from commensald.cluster import Facts, Node, NodeState, Snapshot
from commensald.decision import Pilot
from commensald.forecast import Forecast

OWNER = "replay"
FACTS = Facts(product="replay", version="")


class World:
    """The pool, in the words of the daemon."""

    def __init__(self) -> None:
        self.pool: frozenset[str] = frozenset()
        self._seen: dict[str, tuple[Node, Pilot]] = {}

    def change(self, joined: frozenset[str], left: frozenset[str]) -> None:
        """Nodes come and go."""
        self.pool = (self.pool | joined) - left
        self._seen.update((name, _shown(name)) for name in joined - self._seen.keys())

    def look(self, now: float) -> tuple[Snapshot, Forecast, tuple[Pilot, ...]]:
        """The cluster, what is foreseen of it, and our pilots."""
        shown = [self._seen[name] for name in sorted(self.pool)]
        nodes = tuple(node for node, _ in shown)
        snapshot = Snapshot(taken=now, nodes=nodes, jobs=(), reservations=(), facts=FACTS)
        return snapshot, Forecast(windows=(), made=now), tuple(pilot for _, pilot in shown)


def _shown(name: str) -> tuple[Node, Pilot]:
    return Node(name=name, state=NodeState.ALLOCATED), Pilot(uuid=name, owner=OWNER, node=name, running=True)
