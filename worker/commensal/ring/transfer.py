"""Moving a state from one member to others through the window of the shared memory.

The source's state is one stream of bytes: a prefix with two lengths, the header, then all tensors one after the other. It goes round in
pieces of at most a window; all members of the generation take part in each piece, those that need nothing let it pass.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence

import torch

from commensal.ring import Replica
from commensal.ring.transport import Bytes

PREFIX = struct.Struct("<QQ")

Move = Callable[[int], None]
"""Broadcast the first bytes of the window, and wait. Raises Lost."""


def send(replica: Replica, window: Bytes, move: Move) -> None:
    """Give the replica's state to all."""
    header, tensors = replica.export()
    pieces = [raw(tensor) for tensor in tensors]
    payload_bytes = sum(piece.numel() for piece in pieces)
    _put(window, torch.frombuffer(bytearray(PREFIX.pack(len(header), payload_bytes)), dtype=torch.uint8), move)
    _put(window, torch.frombuffer(bytearray(header), dtype=torch.uint8), move)
    for piece in _joined(pieces, len(window)):
        _put(window, piece, move)


def receive(replica: Replica, window: Bytes, move: Move) -> None:
    """Become the state that the source sends, once all of it has arrived."""
    header_bytes, _ = _prefix(window, move)
    header = bytearray(header_bytes)
    _take(window, torch.frombuffer(header, dtype=torch.uint8), move)
    tensors = replica.blank(bytes(header))
    _scatter([raw(tensor) for tensor in tensors], window, move)
    replica.load(bytes(header), tensors)


def watch(window: Bytes, move: Move) -> None:
    """Take part without wanting anything."""
    for size_bytes in _prefix(window, move):
        for low in range(0, size_bytes, len(window)):
            move(min(len(window), size_bytes - low))


def raw(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a contiguous tensor, shape (bytes,), sharing its memory."""
    return tensor.detach().reshape(-1).view(torch.uint8) if tensor.numel() else torch.empty(0, dtype=torch.uint8)


def _prefix(window: Bytes, move: Move) -> tuple[int, int]:
    move(PREFIX.size)
    header_bytes, payload_bytes = PREFIX.unpack(window[: PREFIX.size].tobytes())
    return header_bytes, payload_bytes


def _put(window: Bytes, data: torch.Tensor, move: Move) -> None:
    target = torch.from_numpy(window)
    for low in range(0, len(data), len(window)):
        part = data[low : low + len(window)]
        target[: len(part)].copy_(part)
        move(len(part))


def _take(window: Bytes, data: torch.Tensor, move: Move) -> None:
    source = torch.from_numpy(window)
    for low in range(0, len(data), len(window)):
        part = data[low : low + len(window)]
        move(len(part))
        part.copy_(source[: len(part)])


def _joined(pieces: Sequence[torch.Tensor], size_bytes: int) -> Iterator[torch.Tensor]:
    """The same bytes, in parts of exactly ``size_bytes`` but for the last."""
    gathered: list[torch.Tensor] = []
    room = size_bytes
    for piece in pieces:
        low = 0
        while low < len(piece):
            gathered.append(piece[low : low + room])
            low, room = low + len(gathered[-1]), room - len(gathered[-1])
            if not room:
                yield torch.cat(gathered)
                gathered, room = [], size_bytes
    if gathered:
        yield torch.cat(gathered)


def _scatter(pieces: Sequence[torch.Tensor], window: Bytes, move: Move) -> None:
    source = torch.from_numpy(window)
    left = sum(len(piece) for piece in pieces)
    at = filled = 0
    for piece in pieces:
        low = 0
        while low < len(piece):
            if at == filled:
                filled, at = min(len(window), left), 0
                move(filled)
                left -= filled
            part = piece[low : low + filled - at]
            part.copy_(source[at : at + len(part)])
            low, at = low + len(part), at + len(part)
