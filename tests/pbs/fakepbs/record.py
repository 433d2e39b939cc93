"""A job as the server keeps it. Times are epoch seconds, ``None`` where they have not come yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fakepbs.options import Asked

QUEUED, HELD, RUNNING, SUSPENDED, RERUN, BEGUN = 10, 20, 42, 45, 60, 70
DELETED, FINISHED = 91, 92
"""Substates (job.h)."""


@dataclass(kw_only=True)
class Record:
    """``origin``: PBS_O_* of the submission; ``parent`` and ``index`` of a subjob of an array."""

    id: str
    asked: Asked
    owner: str
    queue: str
    origin: Mapping[str, str]
    script: str
    created: float
    state: str = "Q"
    substate: int = QUEUED
    modified: float = 0.0
    eligible: float | None = None
    started: float | None = None
    obit: float | None = None
    finished: float | None = None
    limit: float | None = None
    nodes: tuple[str, ...] = ()
    session: int | None = None
    run_count: int = 0
    exit_status: int | None = None
    comment: str | None = None
    requeue: bool = False
    deleted: bool = False
    parent: str | None = None
    index: int | None = None
    children: list[Record] = field(default_factory=list)

    @property
    def number(self) -> str:
        """What stands before the server in its id, without brackets: it names its files."""
        return self.id.partition(".")[0].partition("[")[0]

    @property
    def placed(self) -> list[tuple[str, int]]:
        """(node, cpus) of its chunks."""
        cpus = [chunk.ncpus for chunk in self.asked.chunks for _ in range(chunk.count)]
        return list(zip(self.nodes, cpus, strict=True)) if self.nodes else []

    @property
    def exec_vnode(self) -> str:
        """``(n1:ncpus=4)+(n2:ncpus=4)``."""
        return "+".join(f"({node}:ncpus={cpus})" for node, cpus in self.placed)

    @property
    def exec_host(self) -> str:
        """``n1/0*4+n2/0*4``."""
        return "+".join(f"{node}/0" + (f"*{cpus}" if cpus > 1 else "") for node, cpus in self.placed)
