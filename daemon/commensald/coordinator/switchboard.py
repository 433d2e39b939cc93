"""The coordinator's socket: encrypted, only for known keys, and quick to notice when a peer is gone.

libzmq tells of a lost connection by its file descriptor, and every message carries the descriptor it came through (zmq_msg_gets(3),
``__fd``; zmq_socket_monitor(3)): together they say which peer it was.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import msgspec
import zmq
import zmq.asyncio
from zmq.utils import z85

from commensal.messages import Message, ToDaemon, decode_to_daemon, encode
from commensald.keys import KeyPair
from commensald.strict import InputError

ZAP = "inproc://zeromq.zap.01"


class Arrival(msgspec.Struct, frozen=True):
    """A message, who sent it (a connection), and the public key that it proved (z85)."""

    peer: bytes
    key: str
    message: ToDaemon


class Switchboard:
    """A ROUTER socket with CURVE (RFC 26) and ZAP (RFC 27). ``admits`` is asked whether a public key may connect."""

    def __init__(self, pair: KeyPair, admits: Callable[[str], bool]) -> None:
        self._admits = admits
        self._context = zmq.asyncio.Context()
        self._zap = self._context.socket(zmq.REP)
        self._zap.bind(ZAP)
        self._router = self._context.socket(zmq.ROUTER)
        self._router.linger = 0
        self._router.curve_server = True
        self._router.curve_secretkey = pair.secret.encode()
        self._router.zap_domain = b"commensal"
        self._router.heartbeat_ivl = 1000
        self._router.heartbeat_timeout = 3000
        self._monitor = self._router.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        self._peers: dict[int, bytes] = {}

    def bind(self, address: str, port: int | None) -> int:
        """Listen at ``address``, at ``port`` if it is free, so that members find a restarted daemon where it was. Gives the port.

        Raises InputError, and is closed then, when this host does not have ``address``.
        """
        try:
            self._router.bind(f"tcp://{address}:{port or '*'}")
        except zmq.ZMQError:
            self._bind_anywhere(address)
        return int(bytes(self._router.getsockopt(zmq.LAST_ENDPOINT)).decode().rstrip("\0").rpartition(":")[2])

    def _bind_anywhere(self, address: str) -> None:
        try:
            self._router.bind(f"tcp://{address}:*")
        except zmq.ZMQError as error:
            self.close()
            raise InputError(f"daemon.bind: {address}: {zmq.strerror(error.errno or 0)}") from error

    async def serve_keys(self) -> None:
        """Answer for each handshake whether its key is known."""
        while True:
            version, request, _, _, _, _, credentials, *_ = await self._zap.recv_multipart()
            key = z85.encode(credentials)
            known = self._admits(key.decode())
            status = (b"200", b"OK", key) if known else (b"400", b"unknown key", b"")
            await self._zap.send_multipart([version, request, *status, b""])

    async def receive(self) -> Arrival | msgspec.DecodeError:
        """The next message, or why it could not be read."""
        peer, frame = await self._router.recv_multipart(copy=False)
        self._peers[int(frame.get("__fd"))] = peer.bytes
        try:
            return Arrival(peer.bytes, str(frame.get("User-Id")), decode_to_daemon(frame.bytes))
        except msgspec.DecodeError as error:
            return error

    async def lost(self) -> bytes:
        """The next peer whose connection has gone."""
        while True:
            event, _ = await self._monitor.recv_multipart()
            (descriptor,) = struct.unpack("=2xi", event)
            peer = self._peers.pop(descriptor, None)
            if peer is not None:
                return peer

    def send(self, peer: bytes, message: Message) -> None:
        """Send without waiting; a peer that has gone, or hears nothing any more, misses it.

        By the socket that :meth:`receive` waits on: libzmq signals an arrival once, and a send that the waiter knows nothing of uses the
        signal up (zmq_getsockopt(3), ZMQ_FD). Nobody would be heard until somebody came or went.
        """
        self._router.send_multipart([peer, encode(message)], zmq.DONTWAIT)

    def close(self) -> None:
        """Close all sockets."""
        self._router.disable_monitor()
        for socket in (self._monitor, self._zap, self._router):
            socket.close(linger=0)
        self._context.term()
