"""A training as its researcher asks for it: the training file, checked before anything starts."""

from __future__ import annotations

import math
import os
import re
import shutil
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec

from commensald.strict import InputError, convert, read_toml

CHECKPOINTS = "checkpoints/step-*/manifest.json"
"""Complete checkpoints in a training's folder (commensal/checkpoint.py)."""
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Needs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[pilot]``: what a node must offer; ``None`` leaves it to the scheduler's defaults."""

    partition: str | None = None
    qos: str | None = None
    account: str | None = None
    gres: str | None = None
    cpus: int | None = None
    memory_mib: int | None = None
    features: tuple[str, ...] = ()
    max_minutes: int | None = None


class CurveTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[curve]``: throughput measured before, at ascending node counts."""

    nodes: tuple[int, ...] = ()
    samples_per_second: tuple[float, ...] = ()


class Rescale(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[rescale]``: what a change of size costs, in seconds; ``None``: to be measured."""

    stall_seconds: float | None = None
    warmup_seconds: float | None = None


class BatchTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[batch]``: how one of the script's batches is chosen; ``per_node`` is the largest that one node can hold.

    ``by``: the most samples a second, or the most progress a second, which counts what a sample of a large batch is worth (Pollux).
    """

    per_node: int | None = None
    by: Literal["samples", "progress"] = "samples"


class Goal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[goal]``: where to stop: a loss, a deadline (a TOML date-time with its offset, kept as epoch seconds), a budget in node-hours."""

    loss: float | None = None
    deadline: float | None = None
    budget: float | None = None


class TrainingSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A checked training; paths are absolute, ``name`` is its id, ``owner`` the account that it belongs to."""

    name: str
    script: str
    folder: str
    args: tuple[str, ...] = ()
    python: str = sys.executable
    min_nodes: int = 1
    max_nodes: int = 1
    weight: float = 1.0
    resume: bool = True
    owner: str = ""
    pilot: Needs = Needs()
    curve: CurveTable = CurveTable()
    rescale: Rescale = Rescale()
    batch: BatchTable = BatchTable()
    goal: Goal = Goal()

    @property
    def argv(self) -> tuple[str, ...]:
        """How a member runs the script."""
        return (self.python, self.script, *self.args)


class _Training(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    script: str
    folder: str
    args: tuple[str, ...] = ()
    python: str = sys.executable
    nodes: tuple[int, int] = (1, 8)
    weight: float = 1.0
    resume: bool = True


class _File(msgspec.Struct, frozen=True, kw_only=True):
    training: _Training
    pilot: Needs = Needs()
    curve: CurveTable = CurveTable()
    rescale: Rescale = Rescale()
    batch: BatchTable = BatchTable()
    goal: Goal = Goal()


def load_training(path: Path, owner: str = "") -> TrainingSpec:
    """The training that ``path`` asks for, paths taken relative to it. Raises InputError with one line."""
    table = read_toml(path)
    goal = table.get("goal")
    if isinstance(goal, dict) and "deadline" in goal:
        goal["deadline"] = _instant(goal["deadline"], f"{path}: goal.deadline")
    file = convert(table, _File, str(path))
    asked, where = file.training, str(path)
    spec = TrainingSpec(
        name=asked.name,
        script=_beside(path, asked.script),
        folder=_beside(path, asked.folder),
        args=asked.args,
        python=asked.python if "/" not in asked.python else _beside(path, asked.python),
        min_nodes=asked.nodes[0],
        max_nodes=asked.nodes[1],
        weight=asked.weight,
        resume=asked.resume,
        owner=owner,
        pilot=file.pilot,
        curve=file.curve,
        rescale=file.rescale,
        batch=file.batch,
        goal=file.goal,
    )
    check(spec, where)
    return spec


def check(spec: TrainingSpec, where: str) -> None:
    """Raises InputError, naming ``where``, at the first thing in ``spec`` that cannot work."""
    for fault in (_fault_in_numbers(spec), _fault_in_curve(spec.curve), _fault_in_paths(spec)):
        if fault is not None:
            raise InputError(f"{where}: {fault}")


def unused(spec: TrainingSpec) -> tuple[str, ...]:
    """Keys that were given and that nothing looks at yet: whoever wrote them must be told."""
    given, default = spec.pilot, Needs()
    looked_at = {"account"}  # caps count by it
    fields = (key for key in given.__struct_fields__ if key not in looked_at)
    return tuple(f"pilot.{key}" for key in fields if getattr(given, key) != getattr(default, key))


def _fault_in_numbers(spec: TrainingSpec) -> str | None:
    if not _NAME.fullmatch(spec.name) or spec.name.startswith((".", "-")):
        return f"training.name: {spec.name!r}: expected 1 to 64 letters, digits, '.', '_' or '-', not starting with '.' or '-'"
    if not 1 <= spec.min_nodes <= spec.max_nodes:
        return f"training.nodes: expected [min, max] with 1 <= min <= max, got [{spec.min_nodes}, {spec.max_nodes}]"
    if not 0 < spec.weight < float("inf"):
        return f"training.weight: expected a positive number, got {spec.weight}"
    if spec.batch.per_node is not None and spec.batch.per_node < 1:
        return f"batch.per_node: expected 1 or more, got {spec.batch.per_node}"
    if spec.goal.loss is not None and not math.isfinite(spec.goal.loss):
        return f"goal.loss: expected a finite number, got {spec.goal.loss}"
    if spec.goal.budget is not None and not 0 < spec.goal.budget < math.inf:
        return f"goal.budget: expected node-hours above 0, got {spec.goal.budget}"
    for key in ("stall_seconds", "warmup_seconds"):
        value = getattr(spec.rescale, key)
        if value is not None and not 0 <= value < float("inf"):
            return f"rescale.{key}: expected seconds, 0 or more, got {value}"
    return None


def _fault_in_curve(curve: CurveTable) -> str | None:
    if len(curve.nodes) != len(curve.samples_per_second):
        return f"curve: {len(curve.nodes)} nodes but {len(curve.samples_per_second)} samples_per_second"
    if any(count < 1 for count in curve.nodes) or list(curve.nodes) != sorted(set(curve.nodes)):
        return f"curve.nodes: expected ascending counts from 1, got {list(curve.nodes)}"
    if not all(0 < speed < float("inf") for speed in curve.samples_per_second):
        return f"curve.samples_per_second: expected positive numbers, got {list(curve.samples_per_second)}"
    return None


def _fault_in_paths(spec: TrainingSpec) -> str | None:
    if not Path(spec.script).is_file():
        return f"training.script: {spec.script}: {'not a file' if Path(spec.script).exists() else 'no such file'}"
    if os.path.isabs(spec.python) and not (os.path.isfile(spec.python) and os.access(spec.python, os.X_OK)):
        return f"training.python: {spec.python}: not an executable file"
    if not os.path.isabs(spec.python) and shutil.which(spec.python) is None:
        return f"training.python: {spec.python}: not found on PATH here (a path has a '/' in it: ./{spec.python})"
    if not Path(spec.folder).is_dir():
        return f"training.folder: {spec.folder}: {'not a folder' if Path(spec.folder).exists() else 'no such folder'}"
    if not spec.resume and any(Path(spec.folder).glob(CHECKPOINTS)):
        return f"training.resume: false, but {spec.folder} holds checkpoints: give another folder, or resume = true to go on from them"
    return _fault_in_writing(spec.folder)


def _fault_in_writing(folder: str) -> str | None:
    """Tried, not asked: permissions alone do not tell of read-only file systems or quotas."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return f"training.folder: {folder}: not writable: {error.strerror}"


def _instant(value: object, where: str) -> float:
    """Epoch seconds. Raises InputError."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.timestamp()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    wanted = "a date and time with its offset, without quotes (2026-12-24T18:00:00Z, ...+01:00)"
    raise InputError(f"{where}: expected {wanted}, or epoch seconds, got {str(value)!r}")


def _beside(path: Path, name: str) -> str:
    """``name`` as an absolute path, relative to the folder of ``path``; links are kept (a venv's python is one)."""
    return os.path.abspath(path.absolute().parent / Path(name).expanduser())
