"""A socket file: one live server on it, closed to other accounts."""

from __future__ import annotations

import errno
import os
import socket
import stat
from pathlib import Path

from commensald.strict import InputError


def listen(path: Path) -> socket.socket:
    """Bind the socket, for this account alone (0600); one that a dead server left is replaced.

    Raises InputError when a live server answers there, something else lies in its place, or the folder cannot be written.
    """
    try:
        if path.exists() or path.is_symlink():
            _remove_stale(path)
        return _bind(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def _bind(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(os.fspath(path))
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(before)
    listener.setblocking(False)
    return listener


def _remove_stale(path: Path) -> None:
    if not stat.S_ISSOCK(path.lstat().st_mode):
        raise InputError(f"{path}: exists and is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        answer = probe.connect_ex(os.fspath(path))
    if answer != errno.ECONNREFUSED:
        raise InputError(f"{path}: another server answers on this socket" if answer == 0 else f"{path}: {os.strerror(answer)}")
    path.unlink()
