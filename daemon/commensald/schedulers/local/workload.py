"""Primary jobs to come: what a trace or the generator gives the embedded cluster."""

from __future__ import annotations

import msgspec


class WorkloadJob(msgspec.Struct, frozen=True, kw_only=True):
    """A primary job; ``at`` counts seconds from the start of the cluster, ``seconds`` is how long it runs if it is let."""

    at: float
    node_count: int
    seconds: float
    time_limit: float | None
    name: str
    owner: str
