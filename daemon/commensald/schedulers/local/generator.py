"""The project's own workload: a busy cluster whose wide jobs leave holes.

A wide job waits until enough nodes are free at once, and what is free meanwhile is idle unless a later job is backfilled.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import msgspec

from commensald.schedulers.local.workload import WorkloadJob


class Mix(msgspec.Struct, frozen=True, kw_only=True):
    """What arrives. Widths are shares of the cluster, times are seconds; durations are exponential above a floor."""

    load: float = 0.65
    """Node-seconds that arrive for each that the cluster has; the gap after a job follows from what it takes."""
    jitter: tuple[float, float] = (0.5, 1.5)
    """The gap is this many times what ``load`` asks for."""
    wide_share: float = 0.3
    """How many of the jobs are wide."""
    narrow_width: tuple[float, float] = (0.12, 0.3)
    wide_width: tuple[float, float] = (0.5, 0.9)
    mean_narrow_seconds: float = 20.0
    mean_wide_seconds: float = 9.0
    shortest_seconds: float = 5.0
    longest_seconds: float = 40.0
    overestimate: tuple[float, float] = (1.1, 2.5)
    """A job asks for this many times what it runs."""


def generate(seed: int, nodes: int, mix: Mix | None = None) -> Iterator[WorkloadJob]:
    """An endless workload for ``nodes`` nodes, the same for the same seed."""
    mix, chance, at = mix or Mix(), random.Random(seed), 0.0
    for number in itertools.count():
        job = _job(number, at, nodes, mix, chance)
        yield job
        at += chance.uniform(*mix.jitter) * job.node_count * job.seconds / (mix.load * nodes)


def _job(number: int, at: float, nodes: int, mix: Mix, chance: random.Random) -> WorkloadJob:
    wide = chance.random() < mix.wide_share
    share = chance.uniform(*(mix.wide_width if wide else mix.narrow_width))
    mean = mix.mean_wide_seconds if wide else mix.mean_narrow_seconds
    above = chance.expovariate(1 / max(0.1, mean - mix.shortest_seconds))
    seconds = min(mix.longest_seconds, mix.shortest_seconds + above)
    return WorkloadJob(
        at=at,
        node_count=min(nodes, max(1, round(share * nodes))),
        seconds=seconds,
        time_limit=seconds * chance.uniform(*mix.overestimate),
        name=f"{'wide' if wide else 'narrow'}-{number}",
        owner=f"user{number % 5}",
    )
