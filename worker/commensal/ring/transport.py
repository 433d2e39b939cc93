"""What a transport does for a sidecar. One object serves one generation and is thrown away with its process."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from commensal.ring.commands import Form

Words: TypeAlias = npt.NDArray[np.float32]
Bytes: TypeAlias = npt.NDArray[np.uint8]


class Refused(Exception):
    """A peer or a port is not what the generation expects: wrong nonce, wrong size, wrong address."""


class Exchange(Protocol):
    """Carries port names to and from peers while a generation forms."""

    def offer(self, key: str, to_rank: int, port: str) -> None:
        """Announce a port opened for ``to_rank``."""

    def take(self, key: str) -> str:
        """Wait for the port name of the pairing ``key``."""


class Transport(Protocol):
    """Collective operations among the members of one generation. All calls block; a caller that gives up kills the process."""

    def form(self, place: Form, exchange: Exchange) -> int | None:
        """Join the generation; returns the words from which reductions go round our own ring, ``None`` where there is none.

        Raises Refused when a peer does not prove the generation's nonce or a port does not carry its member's address.
        """

    def reduce(self, words: Words) -> None:
        """Sum over all members, in place; bitwise the same on all."""

    def broadcast(self, window: Bytes, root: int) -> None:
        """Copy ``window`` from ``root`` to all, in place."""

    def close(self) -> None:
        """Leave together with all members."""
