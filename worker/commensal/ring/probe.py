"""Who can be reached: each member listens at a port of its own, and is tried by the others.

After a generation took too long to form this finds the pairs that cannot talk; while the daemon is away, who is dead.
"""

from __future__ import annotations

import errno
import selectors
import socket
import time
from collections.abc import Sequence

from commensal.messages import Seat

PROBE_SECONDS = 1.0


def listen(address: str) -> socket.socket:
    """A listening socket at ``address`` for others to try; connections to it carry nothing."""
    listener = socket.create_server((address, 0), backlog=64)
    listener.setblocking(False)
    return listener


def unreachable(seats: Sequence[Seat], seconds: float = PROBE_SECONDS) -> tuple[str, ...]:
    """Members of ``seats`` that do not accept a connection within ``seconds``, all tried at once."""
    return tuple(sorted(member for member, error in _try(seats, seconds).items() if error != 0))


def dead(seats: Sequence[Seat], seconds: float = PROBE_SECONDS) -> tuple[str, ...]:
    """Members of ``seats`` that are gone for certain: their host answers that nobody listens any more."""
    return tuple(sorted(member for member, error in _try(seats, seconds).items() if error == errno.ECONNREFUSED))


def _try(seats: Sequence[Seat], seconds: float) -> dict[str, int]:
    """Member -> 0 when it accepts a connection, else the error number (ETIMEDOUT after ``seconds``)."""
    attempts: dict[str, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        for seat in seats:
            host, _, port = seat.address.rpartition(":")
            attempt = attempts[seat.member] = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            attempt.setblocking(False)
            attempt.connect_ex((host, int(port)))
            selector.register(attempt, selectors.EVENT_WRITE, seat.member)
        found = _wait(selector, attempts, time.monotonic() + seconds)
    for attempt in attempts.values():
        attempt.close()
    return found


def _wait(selector: selectors.BaseSelector, attempts: dict[str, socket.socket], end: float) -> dict[str, int]:
    found = dict.fromkeys(attempts, errno.ETIMEDOUT)
    open_yet = len(attempts)
    while open_yet and (left := end - time.monotonic()) > 0:
        for key, _ in selector.select(left):
            selector.unregister(key.fileobj)
            open_yet -= 1
            found[key.data] = attempts[key.data].getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    return found
