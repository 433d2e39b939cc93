"""Several members' sidecars driven from one process: what the trainers and the coordinator do with ports, without either."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Sequence
from types import TracebackType

from commensal.ring.buffers import Memory
from commensal.ring.client import Sidecar
from commensal.ring.commands import Broadcast, Done, Event, Exit, Failed, Form, Formed, GivePort, Gone, OpenedPort, Reduce

LIMIT_SECONDS = 30.0


class Broken(Exception):
    """A sidecar failed or ended while the others were waited for."""


class Wiring:
    """Sidecars by rank, each with its own memory, as one generation."""

    def __init__(self, sidecars: Sequence[Sidecar], words: int = 1 << 16, window_bytes: int = 1 << 16) -> None:
        self.sidecars = list(sidecars)
        self.memories = [Memory(words, window_bytes) for _ in sidecars]
        self.events: list[list[Event]] = [[] for _ in sidecars]
        for sidecar, memory in zip(self.sidecars, self.memories, strict=True):
            sidecar.attach(memory)

    def __enter__(self) -> Wiring:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for sidecar in self.sidecars:
            sidecar.kill()
            sidecar.process.wait(5)
        for memory in self.memories:
            memory.close()

    def start_forming(self, address: str, nonces: Sequence[str] | None = None, crossover: int | None = None) -> None:
        """Tell all to form; their nonces are the same unless given."""
        size = len(self.sidecars)
        for rank, sidecar in enumerate(self.sidecars):
            nonce = nonces[rank] if nonces else "nonce"
            sidecar.send(Form(nonce=nonce, rank=rank, size=size, addresses=(address,) * size, crossover_words=crossover))

    def form(self, address: str, crossover: int | None = None) -> list[Formed]:
        """Form, and wait for it."""
        self.start_forming(address, crossover=crossover)
        self.until(lambda: all(self.seen(rank, Formed) for rank in self.ranks))
        return [event for events in self.events for event in events if isinstance(event, Formed)]

    def reduce(self, tag: int, low: int, high: int) -> None:
        """Sum [low, high) over all, and wait for it."""
        for sidecar in self.sidecars:
            sidecar.send(Reduce(tag=tag, low=low, high=high))
        self.wait(tag)

    def broadcast(self, tag: int, root: int, low: int, high: int) -> None:
        """Copy the window from ``root``, and wait for it."""
        for sidecar in self.sidecars:
            sidecar.send(Broadcast(tag=tag, root=root, low=low, high=high))
        self.wait(tag)

    def leave(self) -> None:
        """Let all leave cleanly, and wait for it."""
        for sidecar in self.sidecars:
            sidecar.send(Exit())
        self.until(lambda: all(self.seen(rank, Gone) for rank in self.ranks), breaking=(Failed,))

    def wait(self, tag: int) -> None:
        """Until all are done with ``tag``."""
        self.until(lambda: all(any(isinstance(event, Done) and event.tag == tag for event in events) for events in self.events))

    @property
    def ranks(self) -> range:
        """All of them."""
        return range(len(self.sidecars))

    def seen(self, rank: int, kind: type[Event]) -> bool:
        """Whether ``rank`` has sent such an event."""
        return any(isinstance(event, kind) for event in self.events[rank])

    def pump(self, timeout: float = 0.05) -> None:
        """Read what has arrived, pass ports on."""
        living = [sidecar for sidecar in self.sidecars if not sidecar.dead]
        select.select(living, [], [], timeout)
        for rank, sidecar in enumerate(self.sidecars):
            for event in sidecar.receive():
                self.events[rank].append(event)
                if isinstance(event, OpenedPort):
                    self.sidecars[event.to_rank].send(GivePort(key=event.key, port=event.port))

    def until(
        self, true: Callable[[], bool], limit_seconds: float = LIMIT_SECONDS, breaking: tuple[type[Event], ...] = (Failed, Gone)
    ) -> None:
        """Pump until ``true()``. Raises Broken on a ``breaking`` event, TimeoutError at the limit."""
        end = time.monotonic() + limit_seconds
        while not true():
            failures = [event for events in self.events for event in events if isinstance(event, breaking)]
            if failures:
                raise Broken(str(failures))
            if time.monotonic() > end:
                raise TimeoutError(f"not within {limit_seconds} s: {self.events}")
            self.pump()
