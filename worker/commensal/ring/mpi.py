"""All of MPI. Importing this module initialises MPI, so only a sidecar may.

Singletons (plain python, no mpiexec) find each other by MPI_Open_port, MPI_Comm_accept and MPI_Comm_connect (MPI 4.1 section 11.9).
"""

from __future__ import annotations

import hmac
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import mpi4py
import numpy as np

mpi4py.rc.thread_level = "funneled"
mpi4py.rc.finalize = False
from mpi4py import MPI  # noqa: E402

from commensal.ring.commands import Form  # noqa: E402
from commensal.ring.pairing import Merge, merges, port_address, proof  # noqa: E402
from commensal.ring.transport import Bytes, Exchange, Refused, Words  # noqa: E402

Intercomm: TypeAlias = "MPI.Intercomm"
Intracomm: TypeAlias = "MPI.Intracomm"

SPIN_SECONDS = 0.001
SHORTEST_SLEEP_SECONDS = 1e-5
LONGEST_SLEEP_SECONDS = 1e-3
TRIAL_WORDS = (1 << 12, 1 << 14, 1 << 16, 1 << 18)
TRIAL_ROUNDS = 2
TRIAL_BUDGET_SECONDS = 0.01
SEGMENT_WORDS = 1 << 18
"""Arrived segments of this size are added while later ones are under way."""


class Mpi:
    """The transport over MPI."""

    def __init__(self, oversubscribed: bool) -> None:
        self._spin_seconds = 0.0 if oversubscribed else SPIN_SECONDS
        unlink_segments()
        self._ring: Intracomm = MPI.COMM_SELF
        self._scratch: Words = np.empty(0, np.float32)
        self._crossover_words = 0

    def form(self, place: Form, exchange: Exchange) -> int | None:
        """Merge with the other members' groups round by round, then measure from which size our own ring is the faster one."""
        if place.size == 1:
            return None
        rounds = merges(place.rank, place.size)
        ports = {merge: self._open(merge, place, exchange) for merge in rounds if merge.low == place.rank}
        for merge in rounds:
            self._merge(merge, place, ports.get(merge, ""), exchange)
        unlink_segments()
        self._crossover_words = self._measure() if place.crossover_words is None else place.crossover_words
        return self._crossover_words

    def reduce(self, words: Words) -> None:
        """Sum over all members, in place."""
        if self._ring.size == 1:
            return
        if words.size >= self._crossover_words:
            self._around(words)
        else:
            self._allreduce(words)

    def broadcast(self, window: Bytes, root: int) -> None:
        """Copy ``window`` from ``root`` to all, in place."""
        if self._ring.size > 1:
            self._finish([self._ring.Ibcast(window, root)])

    def close(self) -> None:
        """Disconnect: returns when all members have come to this point."""
        if self._ring.size > 1:
            self._ring.Disconnect()

    def _open(self, merge: Merge, place: Form, exchange: Exchange) -> str:
        port = MPI.Open_port()
        _require_address(port, place.addresses[place.rank])
        exchange.offer(merge.key, merge.high, port)
        return port

    def _merge(self, merge: Merge, place: Form, port: str, exchange: Exchange) -> None:
        """Accept or connect as a group; ranks stay in order, because the accepting group comes first."""
        accepts = place.rank < merge.high
        if place.rank == merge.high:
            port = exchange.take(merge.key)
            _require_address(port, place.addresses[merge.low])
        between = self._ring.Accept(port) if accepts else self._ring.Connect(port)
        if place.rank in (merge.low, merge.high):
            _require_peer(between, merge, place)
        ring = between.Merge(high=not accepts)
        between.Disconnect()
        if self._ring != MPI.COMM_SELF:
            self._ring.Disconnect()
        self._ring = ring

    def _measure(self) -> int:
        """The smallest tried size from which our ring beats MPI_Allreduce, as rank 0 sees it; all members agree.

        Larger sizes than those tried within the budget go round the ring: its lead grows with size (research/mpi2.md section 8).
        """
        verdict, begun = np.zeros(1, np.int64), time.perf_counter()
        for words in TRIAL_WORDS:
            trial = np.zeros(words, np.float32)
            whole, around = self._race(trial)
            over = time.perf_counter() - begun > TRIAL_BUDGET_SECONDS
            verdict[0] = words if around < whole else 2 * words if over else 0
            self.broadcast(verdict.view(np.uint8), 0)
            if verdict[0]:
                return int(verdict[0])
        return 2 * TRIAL_WORDS[-1]

    def _race(self, trial: Words) -> tuple[float, float]:
        """Best seconds of MPI_Allreduce and of our ring over a few turns."""
        seconds: tuple[list[float], list[float]] = ([], [])
        for _ in range(TRIAL_ROUNDS):
            for taken, method in zip(seconds, (self._allreduce, self._around), strict=True):
                begun = time.perf_counter()
                method(trial)
                taken.append(time.perf_counter() - begun)
        return min(seconds[0]), min(seconds[1])

    def _allreduce(self, words: Words) -> None:
        self._finish([self._ring.Iallreduce(MPI.IN_PLACE, words)])

    def _around(self, words: Words) -> None:
        """Reduce-scatter, then allgather, each in size - 1 turns around the ring (Patarasuk and Yuan 2009).

        A chunk is summed up by one member in one order and copied to the others, so all hold the same bits.
        """
        size, rank = self._ring.size, self._ring.rank
        chunks = np.array_split(words, size)
        if self._scratch.size < chunks[0].size:
            self._scratch = np.empty(chunks[0].size, np.float32)
        for turn in range(size - 1):
            self._pass(chunks[(rank - turn) % size], chunks[(rank - turn - 1) % size], add=True)
        for turn in range(size - 1):
            self._pass(chunks[(rank - turn + 1) % size], chunks[(rank - turn) % size], add=False)

    def _pass(self, outgoing: Words, incoming: Words, add: bool) -> None:
        """Send one chunk to the right while one from the left is added to, or replaces, ``incoming``."""
        right, left = (self._ring.rank + 1) % self._ring.size, (self._ring.rank - 1) % self._ring.size
        arriving = _segments(self._scratch[: incoming.size] if add else incoming)
        receives = [self._ring.Irecv(segment, left) for segment in arriving]
        sends = [self._ring.Isend(segment, right) for segment in _segments(outgoing)]
        for receive, segment, target in zip(receives, arriving, _segments(incoming), strict=True):
            self._finish([receive])
            if add:
                target += segment
        self._finish(sends)

    def _finish(self, requests: list[MPI.Request]) -> None:
        """Wait for requests, first spinning, then in sleeps of a tenth of the wait so far: neither the trainer nor other members starve."""
        begun = time.perf_counter()
        while not MPI.Request.Testall(requests):
            waited = time.perf_counter() - begun
            if waited >= self._spin_seconds:
                time.sleep(min(max(waited / 10, SHORTEST_SLEEP_SECONDS), LONGEST_SLEEP_SECONDS))


def unlink_segments() -> None:
    """Remove the names of MPICH's shared memory: a killed process would leave them behind (research/mpi.md section 4)."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        _, found, name = line.partition("/dev/shm/mpich_shm")
        if found:
            with suppress(OSError):
                Path(found + name).unlink()


def _segments(words: Words) -> list[Words]:
    return [words[low : low + SEGMENT_WORDS] for low in range(0, words.size, SEGMENT_WORDS)]


def _require_address(port: str, address: str) -> None:
    try:
        found = port_address(port)
    except ValueError as error:
        raise Refused(str(error)) from error
    if socket.inet_aton(found) != socket.inet_aton(address):
        raise Refused(f"MPI port {port!r} is at {found}, not at its member's address {address}")


def _require_peer(between: Intercomm, merge: Merge, place: Form) -> None:
    """Raises Refused unless the other leader knows the nonce and brings as many members as it should."""
    mine, theirs = ("low", "high") if place.rank == merge.low else ("high", "low")
    answer = bytearray(32)
    between.Sendrecv(proof(place.nonce, merge.key, mine), 0, recvbuf=answer, source=0)
    members = between.size + between.remote_size
    if members != merge.size or not hmac.compare_digest(answer, proof(place.nonce, merge.key, theirs)):
        raise Refused(f"the peer in the pairing {merge.key} is not of this generation")
