"""Which network interface carries the ring: the one that owns the address of the control connection.

libfabric's ``FI_TCP_IFACE`` takes a name only and silently ignores anything else (research/mpi2.md section 1a).
"""

from __future__ import annotations

import socket

import psutil


class NoInterface(LookupError):
    """No interface of this machine has that address."""


def interface_of(address: str) -> str:
    """Name of the interface that owns the IPv4 ``address``. Raises NoInterface, naming the addresses there are."""
    owned = {entry.address: name for name, entries in psutil.net_if_addrs().items() for entry in entries if entry.family == socket.AF_INET}
    try:
        return owned[address]
    except KeyError:
        raise NoInterface(f"no interface has the address {address!r}; this machine has {', '.join(sorted(owned))}") from None


def address_towards(host: str, port: int) -> str:
    """This machine's own IPv4 address on the way to ``host``; sends nothing. Raises OSError when there is no way."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, port))
        return str(probe.getsockname()[0])
