"""The stream of samples: the permutations of all epochs, one after the other, and a position in it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import TensorDataset, default_collate

Indices = npt.NDArray[np.int64]

Batch: TypeAlias = Any
"""Whatever the dataset's items collate to: a tensor, or lists and dictionaries of them."""


class Dataset(Protocol):
    """A map-style dataset."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> object: ...


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """Where a training stands: ``offset`` samples of ``epoch`` are used, ``closed`` steps done, the last with a batch of ``batch``."""

    seed: int
    length: int
    epoch: int = 0
    offset: int = 0
    closed: int = 0
    batch: int

    @property
    def samples(self) -> int:
        """Samples used since the first step."""
        return self.epoch * self.length + self.offset


@lru_cache(maxsize=2)
def permutation(seed: int, epoch: int, length: int) -> Indices:
    """The order of an epoch's samples, from (seed, epoch) alone."""
    order = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, epoch]))).permutation(length)
    order.setflags(write=False)
    return order


def upcoming(position: Position, batch: int) -> Indices:
    """The sample indices of the next step; the last step of an epoch takes what is left and never wraps."""
    return permutation(position.seed, position.epoch, position.length)[position.offset : position.offset + batch]


def advance(position: Position, taken: int, batch: int) -> Position:
    """The position after a step of ``taken`` samples."""
    offset = position.offset + taken
    epoch, offset = (position.epoch + 1, 0) if offset >= position.length else (position.epoch, offset)
    return msgspec.structs.replace(position, epoch=epoch, offset=offset, closed=position.closed + 1, batch=batch)


def fetch(dataset: Dataset, indices: Indices) -> Batch:
    """Items of a map-style dataset, collated as torch's DataLoader does by default."""
    if type(dataset) is TensorDataset:
        chosen = torch.tensor(indices)
        return [tensor[chosen] for tensor in dataset.tensors]
    wanted: Sequence[int] = indices.tolist()
    many = getattr(dataset, "__getitems__", None)
    return default_collate(many(wanted) if many is not None else [dataset[index] for index in wanted])
