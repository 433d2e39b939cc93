"""What a researcher may ask of a training, checked before anything starts."""

from __future__ import annotations

import math
from typing import TypeGuard

import msgspec

from commensal.data import Dataset, Position
from commensal.exact import EXACT_PARAMETERS, MOST_SHARDS
from commensal.learning_rate import RULES
from commensal.update import AUTOCAST

MICRO_BATCH = 32
LARGEST_BATCH = (1 << 24) - 1
"""Sample counts travel as float32 words and must stay exact."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A checked request. ``batch`` is the (smallest, largest) global batch; exactly one of the goals is not ``None``."""

    batch: tuple[int, int]
    micro_batch: int
    epochs: int | None
    steps: int | None
    samples: int | None
    clip_norm: float | None
    precision: str
    lr_rule: str | None
    seed: int
    deterministic: bool | None

    def reached(self, position: Position) -> bool:
        """Whether the goal is reached."""
        goals = ((self.epochs, position.epoch), (self.steps, position.closed), (self.samples, position.samples))
        return any(goal is not None and done >= goal for goal, done in goals)

    def batch_of(self, asked: int | None) -> int:
        """The global batch of a step, ``asked`` by the ring or the smallest. Raises ValueError outside the allowed range."""
        batch = self.batch[0] if asked is None else asked
        if not self.batch[0] <= batch <= self.batch[1]:
            raise ValueError(f"a batch of {batch} is outside batch_size={self.batch}")
        return batch

    @property
    def most_shards(self) -> int:
        """Shards of the largest step."""
        return math.ceil(self.batch[1] / self.micro_batch)

    def exact_shards(self, parameters: int) -> int | None:
        """Shards over which sums must be exact for a model of ``parameters`` words; ``None``: they need not be."""
        cheap = parameters <= EXACT_PARAMETERS and self.most_shards <= MOST_SHARDS and self.precision != "float16"
        return self.most_shards if (cheap if self.deterministic is None else self.deterministic) else None


def plan(
    *,
    batch_size: int | tuple[int, int],
    micro_batch: int | None,
    epochs: int | None,
    steps: int | None,
    samples: int | None,
    clip_norm: float | None,
    precision: str,
    lr_rule: str | None,
    seed: int,
    checkpoint_seconds: float,
    deterministic: bool | None,
) -> Plan:
    """Check all arguments. Raises TypeError or ValueError naming the argument and what it was."""
    batch = _batch(batch_size)
    goals = {"epochs": epochs, "steps": steps, "samples": samples}
    given = [f"{name}={value!r}" for name, value in goals.items() if value is not None]
    if len(given) != 1:
        raise ValueError(f"exactly one of epochs=, steps=, samples= says when to end; given: {', '.join(given) or 'none'}")
    for name, value in goals.items():
        if value is not None:
            _whole(name, value, 1)
    _numbers(clip_norm, checkpoint_seconds)
    if precision not in AUTOCAST:
        raise ValueError(f"precision={precision!r}: expected one of {', '.join(AUTOCAST)}")
    if lr_rule is not None and lr_rule not in RULES:
        raise ValueError(f"lr_rule={lr_rule!r}: expected one of {', '.join(RULES)}, or None")
    micro = min(MICRO_BATCH, batch[0]) if micro_batch is None else _whole("micro_batch", micro_batch, 1)
    _whole("seed", seed, 0)
    result = Plan(
        batch=batch,
        micro_batch=micro,
        **goals,
        clip_norm=clip_norm,
        precision=precision,
        lr_rule=lr_rule,
        seed=seed,
        deterministic=deterministic,
    )
    _exactness(result)
    return msgspec.structs.replace(result, deterministic=True) if lr_rule == "adascale" else result


def length_of(dataset: Dataset) -> int:
    """Samples in a map-style dataset. Raises TypeError or ValueError for anything else."""
    kind = type(dataset).__name__
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        raise TypeError(f"the dataset is a {kind} without __len__ and __getitem__: samples must be addressable by number")
    if len(dataset) < 1:
        raise ValueError(f"the dataset ({kind}) is empty")
    return len(dataset)


def _batch(batch_size: int | tuple[int, int]) -> tuple[int, int]:
    pair = batch_size if isinstance(batch_size, tuple) else (batch_size, batch_size)
    if len(pair) != 2:
        raise ValueError(f"batch_size={batch_size!r}: expected one number or (smallest, largest)")
    for value in pair:
        _whole("batch_size", value, 1)
    if pair[0] > pair[1] or pair[1] > LARGEST_BATCH:
        raise ValueError(f"batch_size={batch_size!r}: expected smallest <= largest <= {LARGEST_BATCH}")
    return pair


def _exactness(asked: Plan) -> None:
    if asked.deterministic not in (True, False, None):
        raise TypeError(f"deterministic={asked.deterministic!r}: expected True, False or None")
    if asked.deterministic is False and asked.lr_rule == "adascale":
        raise ValueError("deterministic=False: lr_rule='adascale' needs each shard's gradient by itself, as exact sums do")
    exact = asked.deterministic or asked.lr_rule == "adascale"
    if exact and asked.precision == "float16":
        raise ValueError('deterministic=True: scaled float16 gradients leave the range of exact sums; use precision="bfloat16"')
    if exact and asked.most_shards > MOST_SHARDS:
        raise ValueError(
            f"deterministic=True: {asked.most_shards} shards a step (batch_size / micro_batch), at most {MOST_SHARDS} add up exactly"
        )


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}={value!r}: expected a whole number")
    if not least <= value < 1 << 63:
        raise ValueError(f"{name}={value!r}: expected {least} or more")
    return value


def _numbers(clip_norm: object, checkpoint_seconds: object) -> None:
    if clip_norm is not None and not (_is_number(clip_norm) and 0 < clip_norm < math.inf):
        raise ValueError(f"clip_norm={clip_norm!r}: expected a positive number or None")
    if not (_is_number(checkpoint_seconds) and checkpoint_seconds >= 0):
        raise ValueError(f"checkpoint_seconds={checkpoint_seconds!r}: expected 0 or more")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
