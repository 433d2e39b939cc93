"""Trainer sets as people write them: the authors' tables (``hpo``, ``mix``), or a TOML file."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import msgspec

from commensald.replay.workload import Kind
from commensald.strict import InputError, convert, read_toml, unknown

SEED = 0
"""Of stalls that the tables give as a range."""
Positive = Annotated[float, msgspec.Meta(gt=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class _Uniform(msgspec.Struct, frozen=True):
    uniform: tuple[Seconds, Seconds]


class _Network(msgspec.Struct, frozen=True):
    nodes: tuple[int, ...]
    images_per_second: tuple[Seconds, ...]


class _Set(msgspec.Struct, frozen=True, kw_only=True):
    count: Count
    samples: Positive
    scale_up_seconds: Seconds | _Uniform
    scale_down_seconds: Seconds | _Uniform
    min_nodes: Count = 1
    max_nodes: Count = 64
    network: str | None = None


class _Tables(msgspec.Struct, frozen=True):
    networks: Mapping[str, _Network]
    trainers: Mapping[str, _Set]


class _Curve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    nodes: tuple[Count, ...]
    samples_per_second: tuple[Seconds, ...]


class _Trainer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    samples: Positive
    nodes: tuple[Count, Count]
    curve: _Curve
    rescale_up: Seconds = 0.0
    rescale_down: Seconds = 0.0
    warm_up: Seconds = 0.0


class _File(msgspec.Struct, frozen=True):
    trainer: tuple[_Trainer, ...]


def load(workload: str, tables: Path | None) -> tuple[Kind, ...]:
    """The trainers of a set in ``tables`` or, where ``workload`` is no name of one, of that file. Raises InputError."""
    if tables is not None:
        read = _tables(tables)
        if workload in read.trainers:
            return _from_tables(workload, read, tables)
        if not Path(workload).exists():
            raise InputError(
                f"--workload: {unknown(workload, read.trainers, 'set')}, and no such file; {tables} has {', '.join(read.trainers)}"
            )
    elif not Path(workload).exists():
        raise InputError(f"--workload {workload}: no such file; the sets of scaling_tables.json need --tables FILE")
    return _from_file(Path(workload))


def _tables(path: Path) -> _Tables:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Tables)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: not a file of scaling tables: {error}") from error


def _from_tables(name: str, tables: _Tables, path: Path) -> tuple[Kind, ...]:
    """``count`` trainers, round robin over the networks as listed; stalls given as a range are drawn for each."""
    asked, draw = tables.trainers[name], random.Random(SEED)
    networks = list(tables.networks) if asked.network is None else [asked.network]
    return tuple(_kind(networks[number % len(networks)], asked, tables, draw, path) for number in range(asked.count))


def _kind(network: str, asked: _Set, tables: _Tables, draw: random.Random, path: Path) -> Kind:
    if network not in tables.networks:
        raise InputError(f"{path}: {unknown(network, tables.networks, 'network')}")
    table = tables.networks[network]
    return Kind(
        name=network,
        curve=_curve(table.nodes, table.images_per_second, f"{path}: {network}"),
        samples=asked.samples,
        min_nodes=asked.min_nodes,
        max_nodes=asked.max_nodes,
        grow_stall=_seconds(asked.scale_up_seconds, draw),
        shrink_stall=_seconds(asked.scale_down_seconds, draw),
    )


def _seconds(given: float | _Uniform, draw: random.Random) -> float:
    return draw.uniform(*given.uniform) if isinstance(given, _Uniform) else given


def _from_file(path: Path) -> tuple[Kind, ...]:
    read = convert(read_toml(path), _File, str(path))
    if not read.trainer:
        raise InputError(f"{path}: expected at least one [[trainer]]")
    return tuple(_written(each, str(path)) for each in read.trainer)


def _written(trainer: _Trainer, where: str) -> Kind:
    least, most = trainer.nodes
    if most < least:
        raise InputError(f"{where}: {trainer.name}: nodes = [min, max] with min <= max, got {[least, most]}")
    return Kind(
        name=trainer.name,
        curve=_curve(trainer.curve.nodes, trainer.curve.samples_per_second, f"{where}: {trainer.name}"),
        samples=trainer.samples,
        min_nodes=least,
        max_nodes=most,
        grow_stall=trainer.rescale_up,
        shrink_stall=trainer.rescale_down,
        warmup=trainer.warm_up,
    )


def _curve(nodes: tuple[int, ...], rates: tuple[float, ...], where: str) -> tuple[tuple[int, float], ...]:
    points = tuple((count, rate) for count, rate in zip(nodes, rates, strict=False) if count > 0)
    ascending = all(before[0] < after[0] for before, after in pairwise(points))
    if len(nodes) != len(rates) or not points or not ascending or not all(rate > 0 for _, rate in points):
        raise InputError(f"{where}: expected as many rates above 0 as nodes, nodes ascending")
    return points
