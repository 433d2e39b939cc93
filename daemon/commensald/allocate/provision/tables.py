"""The tables of a profile file, and what can be wrong in them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import msgspec

from commensald.allocate.provision.loss import Form
from commensald.allocate.provision.ring import Ring
from commensald.allocate.provision.risk import Revocation
from commensald.allocate.provision.spotdnn import Server
from commensald.strict import unknown


class KindTable(msgspec.Struct, frozen=True, kw_only=True):
    """``[[kind]]``: ``batch`` is that of one GPU; the speed is given as ``batch_seconds`` or ``samples_per_second`` of the whole node."""

    name: str
    quota: int
    charge: float
    batch: float | None = None
    memory_gib: float | None = None
    gpus: int = 1
    batch_seconds: float | None = None
    samples_per_second: float | None = None
    preemptions_per_hour: float | None = None


class MemoryTable(msgspec.Struct, frozen=True, kw_only=True):
    """``[memory]``: a2 and b2 of (10), for kinds that give ``memory_gib`` and no ``batch``."""

    a2: float
    b2: float


class LossTable(msgspec.Struct, frozen=True, kw_only=True):
    """``[loss]``: coefficients that are known; without g1, g3 and g5 they are fitted to the runs."""

    form: Form | None = None
    g1: float | None = None
    g2: float = 0.0
    g3: float | None = None
    g4: float | None = None
    g5: float | None = None

    @property
    def given(self) -> bool:
        """Whether any coefficient is."""
        return any(each is not None for each in (self.g1, self.g3, self.g5))


class RunTable(msgspec.Struct, frozen=True, kw_only=True):
    """``[[run]]``: losses seen at steps, on a ``mix`` of kinds, or at a ``batch`` whose workers had these ``shares`` of the samples."""

    steps: tuple[float, ...]
    losses: tuple[float, ...]
    mix: dict[str, int] = {}
    batch: float | None = None
    shares: tuple[float, ...] = (1.0,)


class GoalTable(msgspec.Struct, frozen=True, kw_only=True):
    """``[goal]``, where the command line gives none."""

    loss: float | None = None
    deadline_seconds: float | None = None
    budget: float | None = None


class ProfileFile(msgspec.Struct, frozen=True, kw_only=True):
    """The whole file."""

    model: Literal["spot", "ring"]
    kind: tuple[KindTable, ...]
    unit: str = "node-hours"
    server: Server | None = None
    ring: Ring | None = None
    memory: MemoryTable | None = None
    loss: LossTable = LossTable()
    run: tuple[RunTable, ...] = ()
    preemption: Revocation = Revocation()
    goal: GoalTable = GoalTable()


def faults(file: ProfileFile) -> Iterator[str]:
    """What a person would have to change, one line each."""
    section = "ring" if file.model == "ring" else "server"
    if getattr(file, section) is None:
        yield f"model = '{file.model}' needs a section [{section}]"
    yield from _ring_faults(file)
    if file.server is not None and not all(
        map(_positive, (file.server.parameters, file.server.request, file.server.bandwidth, file.server.pcie))
    ):
        yield "server: parameters, request, bandwidth and pcie are above 0"
    if not file.kind or len({each.name for each in file.kind}) < len(file.kind):
        yield "[[kind]]: at least one, each with a name of its own"
    if file.loss.given == bool(file.run):
        yield "either [loss] g1, g3, g5 (g2, g4) or [[run]] with losses that were seen"
    if file.loss.given and None in (file.loss.g1, file.loss.g3, file.loss.g5):
        yield "loss: g1, g3 and g5 go together"
    if file.loss.given and file.model == "spot" and file.loss.form in (None, "convergence") and not _positive(file.loss.g4):
        yield "loss.g4: above 0, or form = 'sqrt', which has none"
    for kind in file.kind:
        yield from (f"kind '{kind.name}': {words}" for words in _kind_faults(kind, file))
    for number, run in enumerate(file.run, 1):
        yield from (f"run {number}: {words}" for words in _run_faults(run, file))


def _positive(value: float | None) -> bool:
    return value is not None and 0 < value < math.inf


def _ring_faults(file: ProfileFile) -> Iterator[str]:
    ring = file.ring
    if file.model == "ring" and file.loss.form not in (None, "synchronous"):
        yield "loss.form: a ring steps together, its form is 'synchronous'"
    if ring is None:
        return
    if not 1 <= ring.gamma <= 10:
        yield f"ring.gamma: {ring.gamma:g} is not between 1 and 10"
    if not 0 < ring.micro_batch <= ring.batch:
        yield "ring.micro_batch: expected 0 < micro_batch <= batch"
    if not all(0 <= value < math.inf for value in (ring.alpha, ring.beta, ring.alpha_compute)) or (ring.max_members or 1) < 1:
        yield "ring: alpha, beta and alpha_compute are not below 0, max_members is at least 1"


def _kind_faults(kind: KindTable, file: ProfileFile) -> Iterator[str]:
    if (kind.batch is None) == (kind.memory_gib is None) or (kind.memory_gib is not None and file.memory is None):
        yield "either batch, or memory_gib and a section [memory]"
    if (kind.batch_seconds is None) == (kind.samples_per_second is None):
        yield "either batch_seconds or samples_per_second"
    if not all(0 <= value < math.inf for value in (kind.quota, kind.charge, kind.preemptions_per_hour or 0.0)):
        yield "quota, charge and preemptions_per_hour are not below 0"
    if kind.memory_gib is not None and file.memory is not None and file.memory.a2 * kind.memory_gib + file.memory.b2 < 1:
        yield f"memory_gib: {kind.memory_gib:g} GiB hold no sample by [memory]"
    given = (kind.batch, kind.memory_gib, kind.batch_seconds, kind.samples_per_second, float(kind.gpus))
    if not all(_positive(value) for value in given if value is not None):
        yield "batch, memory_gib, gpus and speed are above 0"


def _run_faults(run: RunTable, file: ProfileFile) -> Iterator[str]:
    names = [each.name for each in file.kind]
    yield from (unknown(name, names, "kind") for name in run.mix if name not in names)
    if len(run.steps) != len(run.losses):
        yield f"{len(run.steps)} steps and {len(run.losses)} losses"
    if not all(0 <= step < math.inf for step in run.steps) or not all(map(math.isfinite, run.losses)):
        yield "a step below 0, or a figure that is none"
    if file.model == "spot" and not run.mix and run.batch is None:
        yield "either a mix of kinds, or batch and shares"
    if run.mix and (min(run.mix.values()) < 0 or sum(run.mix.values()) == 0):
        yield "mix: counts are not below 0, and one is above"
    if not run.shares or not all(map(_positive, run.shares)) or not (run.batch is None or _positive(run.batch)):
        yield "shares and batch are above 0"
