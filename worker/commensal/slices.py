"""Cutting a state's tensors into balanced slices, one a member, and the safetensors file of a slice.

The format is written here (a JSON header, then the bytes: https://huggingface.co/docs/safetensors) so that the data goes to disk from where
it lies, is checksummed on the way, and a full disk raises its own OSError; it is read with the safetensors library.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec
import torch
from safetensors import safe_open

from commensal.state import StateError

CODES = {
    **{torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.bool: "BOOL"},
    **{torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8"},
}
CHUNK_BYTES = 1 << 24


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """Elements [start, stop) of a tensor, counted in row-major order."""

    tensor: int
    start: int
    stop: int

    @property
    def name(self) -> str:
        """Its name in the slice file."""
        return f"{self.tensor}:{self.start}"


def cut(sizes: Sequence[tuple[int, int]], parts: int) -> tuple[tuple[Piece, ...], ...]:
    """Cut tensors of (elements, bytes an element) into ``parts`` slices of nearly equal bytes: every element in exactly one piece."""
    total = sum(count * width for count, width in sizes)
    found: list[list[Piece]] = [[] for _ in range(parts)]
    offset = 0
    for tensor, (count, width) in enumerate(sizes):
        edges = [min(max(-(-(total * part // parts - offset) // width), 0), count) for part in range(parts)] + [count]
        for part in range(parts):
            if edges[part] < edges[part + 1]:
                found[part].append(Piece(tensor, edges[part], edges[part + 1]))
        offset += count * width
    return tuple(map(tuple, found))


def write(stream: BinaryIO, tensors: Sequence[torch.Tensor], pieces: Sequence[Piece]) -> tuple[int, str]:
    """Write the pieces as a safetensors file; its size in bytes and its SHA-256."""
    digest, size = hashlib.sha256(), 0
    for chunk in _chunks(tensors, pieces):
        stream.write(chunk)
        digest.update(chunk)
        size += len(chunk)
    return size, digest.hexdigest()


def read(path: Path, pieces: Sequence[Piece], tensors: Sequence[torch.Tensor]) -> int:
    """Fill ``tensors`` with the pieces in a file; the number of elements filled. Raises StateError when a piece does not fit."""
    filled = 0
    with safe_open(path, framework="pt") as content:
        for piece in pieces:
            value = content.get_tensor(piece.name)
            target = tensors[piece.tensor].view(-1)[piece.start : piece.stop]
            if value.shape != target.shape or value.dtype != target.dtype:
                raise StateError(
                    f"{path}: piece {piece.name} is {value.dtype} {tuple(value.shape)}, expected {target.dtype} {target.numel()}"
                )
            target.copy_(value)
            filled += value.numel()
    return filled


def _chunks(tensors: Sequence[torch.Tensor], pieces: Sequence[Piece]) -> Iterator[bytes | memoryview]:
    entries, offset = {}, 0
    for piece in pieces:
        count = piece.stop - piece.start
        size = count * tensors[piece.tensor].element_size()
        entries[piece.name] = {"dtype": CODES[tensors[piece.tensor].dtype], "shape": [count], "data_offsets": [offset, offset + size]}
        offset += size
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    yield len(header).to_bytes(8, "little") + header
    for piece in pieces:
        data = tensors[piece.tensor].view(-1)[piece.start : piece.stop].view(torch.uint8)
        for low in range(0, data.numel(), CHUNK_BYTES):
            yield data[low : low + CHUNK_BYTES].numpy().data
