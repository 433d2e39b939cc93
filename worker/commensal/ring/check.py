"""Whether MPI forms a ring on this host: two sidecars, one sum, and out again.

``python -m commensal.ring.check [--address A]`` prints ``{"seconds": 0.8}``, or one line on standard error and exits with 1.
``commensal doctor`` runs it, so that the daemon's side imports no MPI.
"""

from __future__ import annotations

import argparse
import json
import mmap
import select
import sys
import time
from collections.abc import Callable, Sequence

from commensal.ring.buffers import Memory, map_words
from commensal.ring.client import Sidecar
from commensal.ring.commands import Done, Event, Exit, Failed, Form, Formed, GivePort, Gone, OpenedPort, Reduce
from commensal.ring.interface import NoInterface, address_towards

MEMBERS, WORDS, TAG = 2, 1 << 20, 1
SECONDS = 30.0


class NoRing(Exception):
    """The ring could not be formed, or gave a wrong sum."""


class Trial:
    """The members' sidecars, all driven from here."""

    def __init__(self, sidecars: Sequence[Sidecar], end: float) -> None:
        self._sidecars, self._end = sidecars, end
        self._memories = [Memory(WORDS) for _ in sidecars]
        self._seen: list[list[Event]] = [[] for _ in sidecars]
        for sidecar, memory in zip(sidecars, self._memories, strict=True):
            sidecar.attach(memory)

    def run(self, address: str) -> None:
        """Form, add up, leave. Raises NoRing."""
        words = [map_words(mmap.mmap(each.fd, each.size_bytes), WORDS) for each in self._memories]
        for rank, mine in enumerate(words):
            mine[:] = rank + 1
        for rank, sidecar in enumerate(self._sidecars):
            sidecar.send(Form(nonce="check", rank=rank, size=MEMBERS, addresses=(address,) * MEMBERS))
        self._until("forming", lambda event: isinstance(event, Formed))
        for sidecar in self._sidecars:
            sidecar.send(Reduce(tag=TAG, low=0, high=WORDS))
        self._until("adding up", lambda event: isinstance(event, Done))
        if not all((mine == sum(range(1, MEMBERS + 1))).all() for mine in words):
            raise NoRing("the sum is wrong")
        for sidecar in self._sidecars:
            sidecar.send(Exit())
        self._until("leaving", lambda event: isinstance(event, Gone))

    def _until(self, what: str, wanted: Callable[[Event], bool]) -> None:
        while not all(any(map(wanted, events)) for events in self._seen):
            if time.monotonic() > self._end:
                raise NoRing(f"{what} took too long")
            self._pump()
            for event in (event for events in self._seen for event in events if not wanted(event)):
                if isinstance(event, Failed | Gone):
                    raise NoRing(f"{what} failed: {event.text if isinstance(event, Failed) else event.tail or 'a process ended'}")

    def _pump(self) -> None:
        select.select([each for each in self._sidecars if not each.dead], [], [], 0.1)
        for rank, sidecar in enumerate(self._sidecars):
            for event in sidecar.receive():
                self._seen[rank].append(event)
                if isinstance(event, OpenedPort):
                    self._sidecars[event.to_rank].send(GivePort(key=event.key, port=event.port))


def check(address: str, seconds: float = SECONDS) -> float:
    """How long a ring of two took, start of the processes included. Raises NoRing, NoInterface, OSError, MemoryError."""
    begun = time.monotonic()
    sidecars = [Sidecar("mpi", address, oversubscribed=True) for _ in range(MEMBERS)]
    try:
        Trial(sidecars, begun + seconds).run(address)
    finally:
        for sidecar in sidecars:
            sidecar.kill()
    return time.monotonic() - begun


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m commensal.ring.check", description="Form a ring of two processes on this host.")
    parser.add_argument("--address", help="this host's address for the ring (default: the one that leads out)")
    options = parser.parse_args(arguments)
    try:
        print(json.dumps({"seconds": round(check(options.address or address_towards("192.0.2.1", 9)), 3)}))  # TEST-NET-1 (RFC 5737)
        return 0
    except (NoRing, NoInterface, OSError, MemoryError) as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
