"""The daemon's UNIX socket: whom it lets in, and lines of JSON in and out."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import msgspec

from commensald import requests
from commensald.listening import listen
from commensald.strict import InputError

log = logging.getLogger(__name__)
LINE_LIMIT_BYTES = 1 << 20
_request = msgspec.json.Decoder(requests.Any)


class Control:
    """Listens at ``path`` and answers each request with ``answer``, which raises InputError on wrong use.

    Only this account and root are let in (SO_PEERCRED, unix(7)).
    """

    def __init__(self, path: Path, answer: Callable[[requests.Any], requests.Done]) -> None:
        self._path, self._answer = path, answer
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Bind. Raises InputError when the socket is in use or cannot be made; a dead daemon's is replaced."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self._path.parent}: {error.strerror}") from error
        self._server = await asyncio.start_unix_server(self._serve, sock=listen(self._path), limit=LINE_LIMIT_BYTES)

    async def close(self) -> None:
        """Take no more requests and remove the socket."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if not allowed(writer.get_extra_info("socket")):
                writer.write(_line(requests.Failure(error="this daemon belongs to another account", wrong_use=True)))
                return
            while line := await reader.readline():
                writer.write(_line(self._reply(line)))
                await writer.drain()
        except (ConnectionError, ValueError) as error:
            log.info("control socket: %s", error)
        finally:
            writer.close()

    def _reply(self, line: bytes) -> requests.Answer:
        try:
            return self._answer(_request.decode(line))
        except msgspec.DecodeError as error:
            return requests.Failure(error=f"not a request: {error}", wrong_use=True)
        except InputError as error:
            return requests.Failure(error=str(error), wrong_use=True)


def allowed(peer: socket.socket) -> bool:
    """Whether the process at the other end is ours or root's."""
    _, uid, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return uid in (0, os.getuid())


def _line(answer: requests.Answer) -> bytes:
    return msgspec.json.encode(answer) + b"\n"
