"""The launcher's line to the coordinator: one encrypted socket, looked after."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import msgspec
import zmq

from commensal.messages import Message, decode_to_worker, encode
from commensal.rendezvous import NoRendezvous, dealer

SILENCE_SECONDS = 2.0
LINGER_MS = 100


class Line:
    """The launcher's connection, made anew when the daemon has come back elsewhere. Times are monotonic seconds."""

    def __init__(self, folder: Path, now: float) -> None:
        self._folder = folder
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket: zmq.Socket[bytes] | None = None
        self._up = False
        self._unsaid: list[Message] = []
        self.heard = self._looked = now
        self._reconnect()

    @property
    def up(self) -> bool:
        """The other side is there."""
        return self._up

    def watch(self, poller: zmq.Poller) -> None:
        """Add what may have news."""
        if self._socket is not None:
            poller.register(self._socket, zmq.POLLIN)
            poller.register(self._monitor, zmq.POLLIN)

    def send(self, message: Message) -> bool:
        """Send, if there is anybody: False when there is not."""
        try:
            if self._socket is not None:
                self._socket.send(encode(message), zmq.DONTWAIT)
            return self._socket is not None
        except zmq.Again:
            return False

    def send_surely(self, message: Message) -> None:
        """Send, as soon as there is anybody."""
        self._unsaid.append(message)
        self._send_unsaid()

    def receive(self) -> list[Message]:
        """Everything that has come in."""
        messages: list[Message] = []
        while self._socket is not None and self._socket.poll(0):
            try:
                messages.append(decode_to_worker(self._socket.recv()))
            except msgspec.DecodeError as error:
                print(f"commensal.pilot: unreadable message: {error}", file=sys.stderr)
        return messages

    def tend(self, now: float) -> bool:
        """Note whether the other side is there; after a silence begin anew, where it is now. True when a connection has just come up."""
        came = False
        while self._socket is not None and self._monitor.poll(0):
            (event,) = struct.unpack("=h4x", self._monitor.recv_multipart()[0])  # zmq_socket_monitor(3)
            self._up = event == zmq.EVENT_HANDSHAKE_SUCCEEDED
            came = came or self._up
        if self._up:
            self.heard = now
            self._send_unsaid()
        elif now - max(self.heard, self._looked) >= SILENCE_SECONDS:
            self._looked = now
            self._reconnect()
        return came and self._up

    def close(self) -> None:
        """Say what is still to be said, briefly, and close."""
        self._drop(LINGER_MS)
        self._context.term()

    def _reconnect(self) -> None:
        try:
            socket, there = dealer(self._context, self._folder)
        except NoRendezvous as error:
            print(f"commensal: {error}", file=sys.stderr)
            return
        self._drop(0)
        self._socket = socket
        # Before connecting, or the handshake may be over before anybody looks.
        self._monitor = socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
        socket.connect(there.address)

    def _send_unsaid(self) -> None:
        while self._unsaid and self.send(self._unsaid[0]):
            self._unsaid.pop(0)

    def _drop(self, linger_ms: int) -> None:
        if self._socket is not None:
            self._socket.disable_monitor()
            self._monitor.close(linger=0)
            self._socket.close(linger=linger_ms if self._up else 0)
        self._socket, self._up = None, False
