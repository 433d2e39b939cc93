"""Sidecars as the trainer sees them: started, told what to do, read without blocking, killed.

Nothing here starts a thread. A sidecar dies with the *thread* that started it (prctl(2), PR_SET_PDEATHSIG), so start sidecars from a thread
that lasts as long as they are needed.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import IO

from commensal.ring.buffers import Memory
from commensal.ring.commands import (
    PACKET_BYTES,
    Attach,
    Command,
    Event,
    Gone,
    Ready,
    decode_event,
    encode,
)
from commensal.ring.interface import interface_of
from commensal.ring.sidecar import IGNORED

SCRUBBED = ("PMI", "SLURM", "HYD", "MPIEXEC", "COMMENSAL")
"""Prefixes of variables that would make MPI_Init look for a launcher, or the sidecar take itself for a trainer."""
REAP_SECONDS = 0.02
TAIL_BYTES = 2000
FAILURES = 3


def environment(base: Mapping[str, str], interface: str, oversubscribed: bool) -> dict[str, str]:
    """The sidecar's environment (research/mpi2.md sections 1, 4, 7).

    A foreign ``LD_LIBRARY_PATH`` breaks the mpich wheel, so it stays only where the site chose its own MPI by ``MPI4PY_LIBMPI``.
    """
    kept = {name: value for name, value in base.items() if not name.startswith(SCRUBBED)}
    if "MPI4PY_LIBMPI" not in kept:
        kept.pop("LD_LIBRARY_PATH", None)
    kept |= {
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": interface,
        "GLOO_SOCKET_IFNAME": interface,
        "OMP_NUM_THREADS": "1",
    }
    if oversubscribed:
        kept |= {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1", "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"}
    return kept


class Sidecar:
    """One sidecar process and the trainer's end of its socket pair."""

    def __init__(self, transport: str, address: str, oversubscribed: bool = False) -> None:
        """Starts at once, does not wait. Raises NoInterface when no interface has ``address``, OSError when it cannot start."""
        self.ready = False
        self._gone = False
        self._backlog: deque[bytes] = deque()
        settings = environment(os.environ, interface_of(address), oversubscribed)
        self._stderr = os.fdopen(os.memfd_create("commensal-sidecar-stderr"), "w+b", buffering=0)
        self._end, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._end.setblocking(False)
        with theirs:
            options = ["--fd", str(theirs.fileno()), "--transport", transport, *(["--oversubscribed"] if oversubscribed else [])]
            self.process = _start(options, theirs.fileno(), settings, self._stderr)

    def fileno(self) -> int:
        """For select and poll: readable when :meth:`receive` has something to say."""
        return self._end.fileno()

    @property
    def dead(self) -> bool:
        """It has ended or been killed."""
        return self._gone

    def attach(self, memory: Memory) -> None:
        """Give it the memory; before the first Reduce or Broadcast."""
        command = Attach(words=memory.words, window_offset=memory.window_offset, window_bytes=memory.window_bytes)
        with suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(self._end, [encode(command)], [memory.fd])

    def send(self, command: Command) -> None:
        """Queue a command; never blocks. What a dead sidecar is told is dropped: :meth:`receive` says that it is gone."""
        if not self._gone:
            self._backlog.append(encode(command))
            self._flush()

    def receive(self) -> list[Event]:
        """All events that have arrived; the last one ever is Gone. Never blocks."""
        events: list[Event] = []
        while not self._gone:
            try:
                packet = self._end.recv(PACKET_BYTES)
            except BlockingIOError:
                break
            except ConnectionResetError:
                continue
            if not packet:
                self._gone = True
                events.append(Gone(tail=self.tail()))
                break
            events.append(decode_event(packet))
        self.ready = self.ready or any(isinstance(event, Ready) for event in events)
        self._flush()
        return events

    def tail(self) -> str:
        """The last that it, or its MPI, wrote to stderr."""
        if self._stderr.closed:
            return ""
        size = os.fstat(self._stderr.fileno()).st_size
        return os.pread(self._stderr.fileno(), TAIL_BYTES, max(size - TAIL_BYTES, 0)).decode(errors="replace")

    def kill(self) -> None:
        """SIGKILL, reap, close. Never waits longer than ``REAP_SECONDS``; may be called again, also to reap later."""
        self._gone = True
        self._end.close()
        self._stderr.close()
        if self.process.poll() is None:
            self.process.kill()
            try:
                self.process.wait(REAP_SECONDS)
            except subprocess.TimeoutExpired:
                return

    def _flush(self) -> None:
        while self._backlog and not self._gone:
            try:
                self._end.send(self._backlog[0])
            except BlockingIOError:
                return
            except (BrokenPipeError, ConnectionResetError):
                self._backlog.clear()
                return
            self._backlog.popleft()


class SpareFailed(Exception):
    """Sidecars keep ending before they are ready; the text says what the last one said."""


class Spares:
    """Keeps ``count`` sidecars started, so that a new generation does not wait for python and MPI_Init."""

    def __init__(self, transport: str, address: str, count: int = 2, oversubscribed: bool = False) -> None:
        self._settings = (transport, address, oversubscribed)
        self._count = count
        self._spares: list[Sidecar] = []
        self._failures: list[str] = []
        self.refill()

    @property
    def warm(self) -> int:
        """How many are initialised."""
        self.poll()
        return sum(spare.ready for spare in self._spares)

    @property
    def trouble(self) -> str:
        """What the last one said, when they keep ending before they are ready; "" else."""
        return self._failures[-1] if len(self._failures) >= FAILURES else ""

    def filenos(self) -> list[int]:
        """For select and poll: readable when :attr:`warm` may change."""
        return [spare.fileno() for spare in self._spares]

    def take(self, refill: bool = True) -> Sidecar:
        """A warm sidecar, or the one that has been starting for longest; its commands wait until it is ready.

        ``refill=False`` where a starting process would compete with the forming of the ring: call :meth:`refill` later.
        Raises SpareFailed when ``FAILURES`` in a row have ended before they were ready.
        """
        self.poll()
        if len(self._failures) >= FAILURES:
            raise SpareFailed(self._failures[-1])
        if not self._spares:
            self._spares.append(Sidecar(*self._settings))
        taken = next((spare for spare in self._spares if spare.ready), self._spares[0])
        self._spares.remove(taken)
        if refill:
            self.refill()
        return taken

    def refill(self) -> None:
        """Start what is missing; returns at once. Gives up after ``FAILURES`` failures in a row."""
        self.poll()
        while len(self._spares) < self._count and len(self._failures) < FAILURES:
            self._spares.append(Sidecar(*self._settings))

    def close(self) -> None:
        """Kill them all."""
        for spare in self._spares:
            spare.kill()
        self._spares.clear()

    def poll(self) -> None:
        """Take note of which have become ready and which have ended; never blocks."""
        for spare in list(self._spares):
            for event in spare.receive():
                match event:
                    case Ready():
                        self._failures.clear()
                    case Gone(tail=tail):
                        self._failures.append(tail)
                        self._spares.remove(spare)
                        spare.kill()


def _start(options: list[str], descriptor: int, settings: Mapping[str, str], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start with the signals of a job step blocked, which exec keeps: none can end it before it ignores them."""
    argv = [sys.executable, "-P", "-m", "commensal.ring.sidecar", *options]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, IGNORED)
    try:
        return subprocess.Popen(
            argv, env=settings, pass_fds=[descriptor], stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, close_fds=True
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
