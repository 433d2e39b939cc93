"""A profile file: what a site measured of a training, what its nodes charge, the losses that were seen (config/examples/plan-*.toml)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from commensald.allocate.provision.fit import Observed, TooFew, fit
from commensald.allocate.provision.loss import Form, Loss
from commensald.allocate.provision.pace import Kind, Pace
from commensald.allocate.provision.ring import SynchronousRing
from commensald.allocate.provision.search import Profile
from commensald.allocate.provision.spotdnn import ParameterServer, convergence_coefficient, gpu_batch
from commensald.allocate.provision.tables import GoalTable, KindTable, ProfileFile, RunTable, faults
from commensald.strict import InputError, convert, read_toml, refuse_unknown

Cluster = ParameterServer | SynchronousRing


@dataclass(frozen=True)
class Measured:
    """A profile, the ``unit`` of its charges, the goal it comes with, and what losses were ``observed`` (``None``: coefficients given)."""

    profile: Profile
    unit: str
    goal: GoalTable
    observed: Observed | None


def load_profile(path: Path) -> Measured:
    """The profile that ``path`` holds, its loss model fitted if it has runs. Raises InputError with one line."""
    table, where = read_toml(path), str(path)
    for name, into in (("kind", KindTable), ("run", RunTable)):
        for entry in table.get(name, ()) if isinstance(table.get(name), list) else ():
            if isinstance(entry, dict):
                refuse_unknown(entry, into, where, f"{name}.")
    file = convert(table, ProfileFile, where)
    for fault in faults(file):
        raise InputError(f"{where}: {fault}")
    cluster = _cluster(file)
    for fault in _contradictions(file, cluster):
        raise InputError(f"{where}: {fault}")
    observed = _observed(file, cluster) if file.run else None
    try:
        profile = _fitted(file, cluster, observed) if observed else Profile(cluster, _given(file), None, file.preemption)
    except TooFew as error:
        raise InputError(f"{where}: {error}") from error
    return Measured(profile, file.unit, file.goal, observed)


def _cluster(file: ProfileFile) -> Cluster:
    kinds = tuple(_kind(each, file) for each in file.kind)
    if file.model == "ring":
        assert file.ring is not None
        return SynchronousRing(kinds, file.ring)
    assert file.server is not None
    return ParameterServer(kinds, file.server)


def _kind(table: KindTable, file: ProfileFile) -> Kind:
    batch = table.batch or 0.0
    if table.memory_gib is not None and file.memory is not None:
        batch = gpu_batch(table.memory_gib, file.memory.a2, file.memory.b2)
    samples = batch * table.gpus
    return Kind(
        name=table.name,
        quota=table.quota,
        charge=table.charge,
        batch=samples,
        seconds=table.batch_seconds or samples / (table.samples_per_second or 1.0),
        gpus=table.gpus,
        preemptions_per_hour=table.preemptions_per_hour,
    )


def _given(file: ProfileFile) -> Loss:
    known = file.loss
    return Loss(g1=known.g1 or 0.0, g2=known.g2, g3=known.g3 or 0.0, g4=known.g4 or 0.0, g5=known.g5 or 0.0, form=_form(file))


def _fitted(file: ProfileFile, cluster: Cluster, observed: Observed) -> Profile:
    found = fit(observed, _form(file))
    return Profile(cluster, found.loss, found.band, file.preemption)


def _observed(file: ProfileFile, cluster: Cluster) -> Observed:
    paces = [_run_pace(run, file, cluster) for run in file.run]
    pace = Pace(*(np.concatenate([vars(each)[name] for each in paces]) for name in Pace.__dataclass_fields__))
    steps, losses = (np.array([value for run in file.run for value in getattr(run, name)]) for name in ("steps", "losses"))
    return Observed(steps, losses, pace)


def _form(file: ProfileFile) -> Form:
    return "synchronous" if file.model == "ring" else file.loss.form or "convergence"


def _run_pace(run: RunTable, file: ProfileFile, cluster: Cluster) -> Pace:
    """Of a run's cluster, once for each of its losses."""
    if run.mix:
        one = cluster.pace(np.array([[run.mix.get(kind.name, 0) for kind in cluster.kinds]]))
    else:
        weights = np.array([run.shares]) / sum(run.shares)
        batch = run.batch or (float(file.ring.batch) if file.ring is not None else 0.0)
        spread = convergence_coefficient(np.ones(weights.shape, np.int64), weights)
        one = Pace(np.ones(1), np.array([batch]), np.array([float(weights.size)]), spread)
    return Pace(*(np.repeat(values, len(run.steps)) for values in vars(one).values()))


def _contradictions(file: ProfileFile, cluster: Cluster) -> Iterator[str]:
    if isinstance(cluster, SynchronousRing):
        fixed = cluster.ring.alpha_compute
        yield from (
            f"kind '{kind.name}': {kind.seconds:g} s are no more than ring.alpha_compute" for kind in cluster.kinds if kind.seconds <= fixed
        )
        return
    for kind, seconds in zip(cluster.kinds, cluster.compute_seconds, strict=True):
        if seconds <= 0:
            yield f"kind '{kind.name}': {kind.seconds:.3g} s an iteration is {-seconds:.2g} s less than its transfers alone take ([server])"
