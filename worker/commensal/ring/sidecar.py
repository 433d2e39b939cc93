"""The disposable process beside a trainer: one transport, one generation, then the end.

``python -m commensal.ring.sidecar --fd N --transport mpi|gloo [--oversubscribed]``, with N one end of a SOCK_SEQPACKET pair.
It ends by command, when the other end closes, or with its parent. It is started with the signals of a job step blocked, ignores them,
and then unblocks them.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import mmap
import os
import select
import signal
import socket
import sys
import threading
import time
from collections import deque

import numpy as np

from commensal.ring.buffers import map_window, map_words
from commensal.ring.commands import (
    PACKET_BYTES,
    Attach,
    Broadcast,
    Command,
    Done,
    Event,
    Exit,
    Failed,
    Form,
    Formed,
    GivePort,
    OpenedPort,
    Ready,
    Reduce,
    decode_command,
    encode,
)
from commensal.ring.transport import Bytes, Refused, Transport, Words

IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Slurm and PBS signal every process of a step; a sidecar answers to its trainer alone."""
TRANSPORTS = {"mpi": "Mpi", "gloo": "Gloo"}
_PR_SET_PDEATHSIG = 1


class Channel:
    """The sidecar's end of the socket pair; also carries ports while a generation forms (an Exchange)."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._waiting: deque[tuple[Command, int | None]] = deque()
        self._ports: dict[str, str] = {}

    def send(self, event: Event) -> None:
        """Blocks while the trainer's queue is full."""
        self._end.sendall(encode(event))

    def next(self) -> tuple[Command, int | None]:
        """The next command in order, and the descriptor that came with it."""
        while not self._waiting:
            self._read()
        return self._waiting.popleft()

    def offer(self, key: str, to_rank: int, port: str) -> None:
        """Announce a port."""
        self.send(OpenedPort(key=key, to_rank=to_rank, port=port))

    def take(self, key: str) -> str:
        """Wait for a peer's port."""
        while key not in self._ports:
            self._read()
        return self._ports.pop(key)

    def _read(self) -> None:
        packet, descriptors, _, _ = socket.recv_fds(self._end, PACKET_BYTES, 1)
        if not packet:
            os._exit(0)
        command = decode_command(packet)
        if isinstance(command, GivePort):
            self._ports[command.key] = command.port
        else:
            self._waiting.append((command, descriptors[0] if descriptors else None))


class Sidecar:
    """Carries out commands, one after the other."""

    def __init__(self, channel: Channel, transport: Transport) -> None:
        self._channel = channel
        self._transport = transport
        self._words: Words = np.empty(0, np.float32)
        self._window: Bytes = np.empty(0, np.uint8)

    def serve(self) -> None:
        """Until Exit."""
        while True:
            command, descriptor = self._channel.next()
            begun = time.perf_counter()
            match command:
                case Attach() if descriptor is not None:
                    self._attach(command, descriptor)
                case Form():
                    crossover = self._transport.form(command, self._channel)
                    self._channel.send(Formed(seconds=time.perf_counter() - begun, crossover_words=crossover))
                case Reduce(tag=tag, low=low, high=high):
                    self._transport.reduce(self._words[low:high])
                    self._channel.send(Done(tag=tag, seconds=time.perf_counter() - begun))
                case Broadcast(tag=tag, root=root, low=low, high=high):
                    self._transport.broadcast(self._window[low:high], root)
                    self._channel.send(Done(tag=tag, seconds=time.perf_counter() - begun))
                case Exit():
                    return self._transport.close()
                case _:
                    raise Refused(f"unexpected command {command!r}")

    def _attach(self, command: Attach, descriptor: int) -> None:
        mapping = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
        os.close(descriptor)
        self._words = map_words(mapping, command.words)
        self._window = map_window(mapping, command.window_offset, command.window_bytes)


def shield() -> None:
    """Ignore the signals of a job step, which the trainer has blocked for us, and die with the thread that started us (prctl(2))."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, IGNORED)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def end_with(end: socket.socket) -> None:
    """End this process as soon as the other end closes, whatever the main thread is doing."""
    watch = select.poll()
    watch.register(end.fileno(), 0)

    def wait() -> None:
        watch.poll()
        os._exit(0)

    threading.Thread(target=wait, daemon=True, name="end-of-stream").start()


def load(name: str, oversubscribed: bool) -> Transport:
    """Import the room of a transport, which initialises it."""
    transport: Transport = getattr(importlib.import_module(f"commensal.ring.{name}"), TRANSPORTS[name])(oversubscribed)
    return transport


def main() -> None:
    """Entry point."""
    begun = time.perf_counter()
    shield()
    parser = argparse.ArgumentParser(description="carries one generation of a ring; started by commensal.ring.client")
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--transport", choices=sorted(TRANSPORTS), required=True)
    parser.add_argument("--oversubscribed", action="store_true", help="members outnumber cores: give way while waiting")
    options = parser.parse_args()
    end = socket.socket(fileno=options.fd)
    end_with(end)
    channel, status = Channel(end), 0
    try:
        transport = load(options.transport, options.oversubscribed)
        channel.send(Ready(init_seconds=time.perf_counter() - begun))
        Sidecar(channel, transport).serve()
    except (Refused, RuntimeError, OSError, ValueError, ImportError) as error:
        print(error, file=sys.stderr, flush=True)
        channel.send(Failed(text=f"{type(error).__name__}: {error}"))
        status = 1
    os._exit(status)


if __name__ == "__main__":
    main()
