"""Who accepts whom while a generation forms, and how both sides prove that they belong. Pure.

Groups of ranks merge in rounds: in the round of width w, the group led by rank b (a multiple of 2w) accepts the one led by b + w. After
ceil(log2 n) rounds one group is left. A leader connects only after all its own accepts, so nobody sits in Connect while somebody may
connect to it under the same port tag: MPICH mixes the two up (research/mpi2.md section 4).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import socket
from typing import NamedTuple

_ZERO_RUN = re.compile(r"\[(\d+)\]")
_SOCKADDR_BYTES = 16
_FAMILY_AND_PORT_BYTES = 4


class Merge(NamedTuple):
    """One round as one rank sees it: the group led by ``low`` accepts the group led by ``high``, ``size`` members in all."""

    low: int
    high: int
    size: int

    @property
    def key(self) -> str:
        """Names the pairing; distinct within a generation."""
        return f"{self.low}-{self.high}"


def merges(rank: int, size: int) -> list[Merge]:
    """The rounds that ``rank`` takes part in, in order."""
    found, width = [], 1
    while width < size:
        low = rank // (2 * width) * (2 * width)
        if low + width < size:
            found.append(Merge(low, low + width, min(2 * width, size - low)))
        width *= 2
    return found


def proof(nonce: str, key: str, side: str) -> bytes:
    """32 bytes that only a holder of ``nonce`` can make; they do not give it away (RFC 2104)."""
    return hmac.digest(nonce.encode(), f"{key}/{side}".encode(), hashlib.sha256)


def port_address(port: str) -> str:
    """The IPv4 address in an MPICH port name over OFI/tcp: ``tag#0$connentry#00020088437F[2]01[8]$`` is at 127.0.0.1.

    The entry is hexadecimal, ``[n]`` stands for n zero bytes, and it ends with a ``struct sockaddr_in``. Raises ValueError.
    """
    _, marker, rest = port.partition("connentry#")
    try:
        entry = bytes.fromhex(_ZERO_RUN.sub(lambda run: "00" * int(run[1]), rest.rstrip("$")))
    except ValueError:
        entry = b""
    if not marker or len(entry) < _SOCKADDR_BYTES:
        raise ValueError(f"no IPv4 address in the MPI port name {port!r}")
    start = len(entry) - _SOCKADDR_BYTES + _FAMILY_AND_PORT_BYTES
    return socket.inet_ntoa(entry[start : start + 4])
