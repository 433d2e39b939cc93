"""What has been learnt of a training while it ran, as its demand takes it: its curve, its rescale costs, the model behind its batches."""

from __future__ import annotations

import msgspec
import numpy as np

from commensal.messages import Batches
from commensald.allocate import curves
from commensald.allocate.elastic import ElasticBatch, fastest
from commensald.allocate.fitting import fit
from commensald.allocate.observations import learn_rescale
from commensald.coordinator.pace import Seen
from commensald.goals import Outlook, outlook
from commensald.trainings import TrainingSpec

WORTH_CHANGING = 1.05
"""A batch gives way only to one that is faster by this factor: each change is a new generation."""


class Learnt(msgspec.Struct, frozen=True, kw_only=True):
    """What the researcher gave comes before what was seen, and that before what is usual."""

    curve: curves.Curve
    stall_seconds: float = 0.0
    warmup_seconds: float = 0.0
    elastic: ElasticBatch | None = None
    batches: tuple[int, ...] = ()
    """For 1, 2, ... nodes, where it may be chosen."""
    outlook: Outlook | None = None
    """On its goal."""


def learn(spec: TrainingSpec, allowed: Batches | None, seen: Seen, now: float, before: tuple[int, ...] = ()) -> Learnt:
    """``allowed`` are the batches of its script, once known; ``before`` is what was chosen of them last time; ``now`` in epoch seconds."""
    stall, warmup = learn_rescale(seen.rescales)
    elastic = _elastic(spec, allowed, seen) if allowed is not None and allowed.smallest < allowed.largest and seen.steps else None
    curve = _curve(spec, allowed, seen, elastic)
    return Learnt(
        curve=curve,
        stall_seconds=stall if spec.rescale.stall_seconds is None else spec.rescale.stall_seconds,
        warmup_seconds=warmup if spec.rescale.warmup_seconds is None else spec.rescale.warmup_seconds,
        elastic=elastic,
        batches=choose(elastic, spec.max_nodes, before) if elastic is not None else (),
        outlook=outlook(spec.goal, seen, curves.meet(curve, seen.steps) if spec.curve.nodes else curve, spec.max_nodes, now),
    )


def _curve(spec: TrainingSpec, allowed: Batches | None, seen: Seen, elastic: ElasticBatch | None) -> curves.Curve:
    if spec.curve.nodes:
        return tuple(zip(spec.curve.nodes, spec.curve.samples_per_second, strict=True))
    if elastic is not None:
        return tuple(enumerate(fastest(elastic, spec.max_nodes)[1], start=1))
    return curves.learn(seen.steps, spec.max_nodes, allowed.micro if allowed is not None else None)


def _elastic(spec: TrainingSpec, allowed: Batches, seen: Seen) -> ElasticBatch:
    return ElasticBatch(
        least=allowed.smallest,
        most=allowed.largest,
        times=fit(seen.steps, allowed.micro),
        per_device=spec.batch.per_node,
        noise_scale=seen.noise_scale if spec.batch.by == "progress" else None,
    )


def choose(elastic: ElasticBatch, most_nodes: int, before: tuple[int, ...]) -> tuple[int, ...]:
    """The batch for 1..``most_nodes`` nodes: that of ``before`` while it is nearly as good as the best, the smallest where none fits."""
    sizes, best = fastest(elastic, most_nodes)
    sizes = tuple(size or elastic.least for size in sizes)
    if len(before) != most_nodes:
        return sizes
    kept = elastic.progress(np.arange(1, most_nodes + 1), np.array(before))
    return tuple(old if now * WORTH_CHANGING >= top else new for old, now, new, top in zip(before, kept.tolist(), sizes, best, strict=True))
