"""Shards, shares, the stream and slices: everything in exactly one place, whatever the sizes."""

from __future__ import annotations

import io
import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from commensal import slices
from commensal.batch import shards, shares
from commensal.data import Position, advance, upcoming
from commensal.learning_rate import factor
from commensal.words import StreamError, check, checksum

SPEEDS = st.lists(st.floats(1e-3, 1e3) | st.sampled_from([0.0, math.nan, math.inf, -1.0]), min_size=1, max_size=9)


@given(st.integers(1, 500), st.integers(1, 64))
def test_shards_cover_the_batch_in_order_and_differ_by_at_most_one(samples: int, micro_batch: int) -> None:
    cut = shards(samples, micro_batch)
    assert [position for shard in cut for position in shard] == list(range(samples))
    assert len(cut) == math.ceil(samples / micro_batch)
    assert max(map(len, cut)) - min(map(len, cut)) <= 1
    assert max(map(len, cut)) <= micro_batch


@given(st.integers(1, 60), SPEEDS)
def test_every_shard_has_one_member(count: int, speeds: list[float]) -> None:
    assert [shard for share in shares(count, speeds) for shard in share] == list(range(count))


@given(st.integers(1, 5), st.lists(st.floats(0.1, 10), min_size=2, max_size=3))
def test_no_other_split_ends_earlier(count: int, speeds: list[float]) -> None:
    best = min(
        max(given / speed for given, speed in zip(split, speeds, strict=True))
        for split in np.ndindex(*[count + 1] * len(speeds))
        if sum(split) == count
    )
    ours = max(len(share) / speed for share, speed in zip(shares(count, speeds), speeds, strict=True))
    assert ours == pytest.approx(best)


@given(st.integers(1, 90), st.integers(0, 1 << 62), st.lists(st.integers(1, 100), min_size=1, max_size=5))
def test_each_sample_once_an_epoch_with_any_batches(length: int, seed: int, batches: list[int]) -> None:
    position = Position(seed=seed, length=length, batch=batches[0])
    epochs: list[list[int]] = [[], [], []]
    while position.epoch < len(epochs):
        batch = batches[position.closed % len(batches)]
        taken = upcoming(position, batch)
        epochs[position.epoch].extend(taken.tolist())
        assert position.samples == sum(map(len, epochs)) - len(taken)
        position = advance(position, len(taken), batch)
    assert all(sorted(epoch) == list(range(length)) for epoch in epochs)


def test_epochs_differ_and_seeds_differ() -> None:
    orders = [upcoming(Position(seed=seed, length=50, epoch=epoch, batch=50), 50).tolist() for seed in (0, 1) for epoch in (0, 1)]
    assert len({tuple(order) for order in orders}) == 4


@given(st.lists(st.integers(0, 1 << 40), min_size=2, max_size=30, unique=True), st.integers(1, 5))
def test_control_words_tell_a_missing_and_a_doubled_sample(indices: list[int], members: int) -> None:
    whole = np.array(indices)
    parts = [checksum(part) for part in np.array_split(whole, members)]
    sums = [0.0, 0.0, 0.0, *(float(np.float32(sum(column))) for column in zip(*parts, strict=True)), 0.0]
    check(sums, whole, 1)
    with pytest.raises(StreamError, match="step 1"):
        check([*sums[:3], *checksum(whole[1:]), 0.0], whole, 1)
    doubled = np.concatenate([whole[:-1], whole[:1]])
    if checksum(doubled) != checksum(whole):
        with pytest.raises(StreamError):
            check([*sums[:3], *checksum(doubled), 0.0], whole, 1)


def test_the_learning_rate_follows_the_batch() -> None:
    assert [factor(rule, 512, 128) for rule in ("linear", "sqrt", None)] == [4.0, 2.0, 1.0]


TENSORS = st.lists(
    st.tuples(st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool]), st.integers(0, 40)),
    min_size=1,
    max_size=6,
)


@settings(deadline=None)
@given(TENSORS, st.integers(1, 7))
def test_slices_of_any_number_of_writers_make_up_the_state(kinds: list[tuple[torch.dtype, int]], parts: int) -> None:
    tensors = [torch.randint(0, 2, (count,)).to(dtype) for dtype, count in kinds]
    read = [torch.empty_like(tensor) for tensor in tensors]
    cuts = slices.cut([(tensor.numel(), tensor.element_size()) for tensor in tensors], parts)
    sizes = []
    with tempfile.TemporaryDirectory() as folder:
        for part, pieces in enumerate(cuts):
            content = io.BytesIO()
            slices.write(content, tensors, pieces)
            path = Path(folder) / f"{part}.safetensors"
            path.write_bytes(content.getvalue())
            slices.read(path, pieces, read)
            sizes.append(sum((piece.stop - piece.start) * tensors[piece.tensor].element_size() for piece in pieces))
    assert all(torch.equal(left, right) for left, right in zip(tensors, read, strict=True))
    assert max(sizes) - min(sizes) <= 16
