"""Which sidecar carries which generation, and what has arrived from each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from commensal.messages import Generation, PeerPort, Port, Propose
from commensal.ring.buffers import Memory
from commensal.ring.client import Sidecar, Spares
from commensal.ring.commands import Broadcast, Command, Done, Failed, Form, Formed, GivePort, Gone, OpenedPort, Reduce


class Generations:
    """The sidecars of one member. A generation of one member needs none: its sums are its own words."""

    def __init__(self, me: str, spares: Spares) -> None:
        self._me = me
        self._spares = spares
        self._sidecars: dict[Generation, Sidecar] = {}
        self._seats: dict[Generation, tuple[str, ...]] = {}
        self._formed: set[Generation] = set()
        self._waiting: dict[Generation, set[int]] = {}
        self._tag = 0

    def filenos(self) -> list[int]:
        """For poll: readable when :meth:`collect` has something."""
        return [*(sidecar.fileno() for sidecar in self._sidecars.values()), *self._spares.filenos()]

    def form(self, propose: Propose, memory: Memory) -> None:
        """Let a warm sidecar form the generation. Raises SpareFailed."""
        generation = propose.generation
        self._seats[generation] = tuple(seat.member for seat in propose.seats)
        self._waiting[generation] = set()
        if len(propose.seats) == 1:
            self._formed.add(generation)
            return
        sidecar = self._spares.take(refill=False)
        sidecar.attach(memory)
        addresses = tuple(seat.address.rpartition(":")[0] for seat in propose.seats)
        rank = self._seats[generation].index(self._me)
        sidecar.send(Form(nonce=propose.nonce, rank=rank, size=len(addresses), addresses=addresses))
        self._sidecars[generation] = sidecar

    def give(self, message: PeerPort) -> None:
        """Pass on a port that a peer opened."""
        sidecar = self._sidecars.get(message.generation)
        if sidecar is not None:
            sidecar.send(GivePort(key=message.key, port=message.port))

    def kill(self, generation: Generation) -> None:
        """Kill every sidecar up to ``generation``."""
        for each in [each for each in self._seats if each <= generation]:
            self.drop(each)

    def drop(self, generation: Generation) -> None:
        """Kill the sidecar of this generation."""
        sidecar = self._sidecars.pop(generation, None)
        if sidecar is not None:
            sidecar.kill()
        self._seats.pop(generation, None)
        self._waiting.pop(generation, None)
        self._formed.discard(generation)

    def reduce(self, generation: Generation, low: int, high: int) -> None:
        """Start adding up words; nothing happens when the generation is gone, which :meth:`arrived` says."""
        self._start(generation, lambda tag: Reduce(tag=tag, low=low, high=high))

    def broadcast(self, generation: Generation, root: int, size_bytes: int) -> None:
        """Start copying the first bytes of the window from rank ``root``."""
        self._start(generation, lambda tag: Broadcast(tag=tag, root=root, low=0, high=size_bytes))

    def _start(self, generation: Generation, command: Callable[[int], Command]) -> None:
        sidecar = self._sidecars.get(generation)
        if sidecar is None:
            return
        self._tag += 1
        self._waiting[generation].add(self._tag)
        sidecar.send(command(self._tag))

    def alive(self, generation: Generation) -> bool:
        """Whether this generation can still carry anything."""
        return generation in self._seats

    def arrived(self, generation: Generation) -> bool:
        """Everything started has arrived."""
        return not self._waiting.get(generation)

    def collect(self) -> Iterator[Port | Generation | tuple[Generation, str]]:
        """What has happened: a port to pass on, a generation that has formed, one that has broken and why."""
        for generation in [each for each in self._formed if self._waiting.get(each) is not None and each not in self._sidecars]:
            self._formed.discard(generation)
            yield generation
        for generation, sidecar in list(self._sidecars.items()):
            for event in sidecar.receive():
                match event:
                    case OpenedPort(key=key, to_rank=rank, port=port):
                        yield Port(generation=generation, member=self._me, to=self._seats[generation][rank], key=key, port=port)
                    case Formed():
                        yield generation
                    case Done(tag=tag):
                        self._waiting[generation].discard(tag)
                    case Failed(text=text):
                        yield generation, text
                    case Gone(tail=tail):
                        yield generation, f"its sidecar ended: {tail[-300:]}"
        self._spares.poll()

    @property
    def spares(self) -> int:
        """Sidecars that can form a generation at once."""
        return self._spares.warm

    @property
    def trouble(self) -> str:
        """Why there are none, when they cannot start."""
        return self._spares.trouble

    def refill(self) -> None:
        """Start missing spares, when nothing more urgent is under way."""
        self._spares.refill()

    def close(self) -> None:
        """Kill everything."""
        for generation in list(self._seats):
            self.drop(generation)
        self._spares.close()
