"""Why a training has no node."""

from __future__ import annotations

import msgspec

from commensald.decision import Demand
from commensald.waiting import reasons

WANT = Demand(training="t", owner="me", min_nodes=2, max_nodes=4)


def test_who_has_nodes_or_asks_for_none_does_not_wait() -> None:
    held = msgspec.structs.replace(WANT, nodes=frozenset({"n1", "n2"}))
    assert reasons([held], [held], {}, 0) == {}
    assert reasons([WANT], [WANT], {"t": frozenset({"n1", "n2"})}, 2) == {}
    paused = msgspec.structs.replace(WANT, active=False)
    assert reasons([paused], [paused], {}, 4) == {}


def test_each_reason_has_its_words() -> None:
    pinned = msgspec.structs.replace(WANT, active=False)
    assert "needs 2 nodes, 1 are free" in reasons([WANT], [WANT], {}, 1)["t"]
    assert "autoscaler" in reasons([WANT], [pinned], {}, 3)["t"]
    assert "pilots" in reasons([WANT], [WANT], {}, 3)["t"]
