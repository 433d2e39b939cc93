"""Telling systemd how the daemon is: the sd_notify(3) protocol, one datagram to $NOTIFY_SOCKET."""

from __future__ import annotations

import os
import socket


def notify(*words: str) -> None:
    """Send "READY=1", "STATUS=...", "WATCHDOG=1", "STOPPING=1"; nothing when nobody listens."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        channel.settimeout(0.1)
        try:
            channel.sendto("\n".join(words).encode(), "\0" + address[1:] if address.startswith("@") else address)
        except OSError:
            return  # a supervisor that is away must not stop the daemon


def watchdog_seconds() -> float | None:
    """How often systemd wants to hear WATCHDOG=1, halved as sd_watchdog_enabled(3) advises; ``None`` when it does not."""
    wanted = os.environ.get("WATCHDOG_USEC")
    return int(wanted) / 2e6 if wanted and wanted.isdigit() else None
