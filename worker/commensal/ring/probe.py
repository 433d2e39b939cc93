"""Who can be reached: each member listens at a port of its own, and is tried by the others after a generation took too long to form."""

from __future__ import annotations

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
    waiting: dict[str, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        for seat in seats:
            host, _, port = seat.address.rpartition(":")
            attempt = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            attempt.setblocking(False)
            attempt.connect_ex((host, int(port)))
            selector.register(attempt, selectors.EVENT_WRITE, seat.member)
            waiting[seat.member] = attempt
        failed = _wait(selector, waiting, time.monotonic() + seconds)
    for attempt in waiting.values():
        attempt.close()
    return tuple(sorted(failed))


def _wait(selector: selectors.BaseSelector, attempts: dict[str, socket.socket], end: float) -> set[str]:
    failed = set(attempts)
    open_yet = set(attempts)
    while open_yet and (left := end - time.monotonic()) > 0:
        for key, _ in selector.select(left):
            selector.unregister(key.fileobj)
            open_yet.discard(key.data)
            if attempts[key.data].getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                failed.discard(key.data)
    return failed
