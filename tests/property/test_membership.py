"""Membership, both sides together, under any order of joins, leaves, losses, restarts and late messages.

The two pure state machines run in a world whose network, ring and disk are modelled: queues keep their order and lose everything when an
end dies; a step completes at a member once all seats have put in their words, at each member by itself; a state moves by copying its
history.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commensal.member import Drop, End, Form, Kill, Member, Probe, Send, Words
from commensal.messages import (
    Batches,
    Beat,
    Commit,
    Generation,
    Goodbye,
    Hello,
    Message,
    Warm,
    Welcome,
    Withdrawn,
)
from commensald.coordinator import GenerationRecord, Limits
from commensald.coordinator import effects as effect
from commensald.coordinator.membership import Membership

EXAMPLES = int(os.environ.get("COMMENSAL_EXAMPLES", "60"))
"""How many worlds each property tries; thousands were run when the protocol was made."""
LIMITS = Limits(settle_seconds=0.1, form_timeout=3.0, orphan_limit=8.0)
History = tuple[tuple[int, Generation], ...]


@dataclass
class Process:
    """One training process: the machine, the history of steps that made its state, and its ring's words."""

    machine: Member
    up: list[Message] = field(default_factory=list)
    down: list[Message] = field(default_factory=list)
    connected: bool = False
    history: History = ()
    words: Words | None = None
    """Put in for the step after ``closed``; ``None``: not yet entered."""
    sidecars: set[Generation] = field(default_factory=set)
    record_of: int | None = None


class World:
    """Everything outside of the machines, and the promises that are checked after each event."""

    def __init__(self) -> None:
        self.now = 0.0
        self.incarnation = 0
        self.record: GenerationRecord | None = None
        self.daemon: Membership | None = None
        self.processes: dict[str, Process] = {}
        self.born = 0
        self.words: dict[tuple[Generation, int], dict[str, Words]] = {}
        self.offered: dict[Generation, tuple[int, History]] = {}
        self.disk: History = ()
        self.slices: dict[tuple[Generation, int], set[str]] = {}
        self.settled: History = ()
        self.start_daemon()

    # ---- faults and wishes

    def start_daemon(self) -> None:
        self.incarnation += 1
        self.daemon = Membership("t", self.incarnation, LIMITS, self.now, self.record)

    def kill_daemon(self) -> None:
        self.daemon = None
        for process in self.processes.values():
            process.connected, process.up, process.down = False, [], []

    def join(self) -> None:
        name = f"m{self.born}"
        self.born += 1
        self.processes[name] = Process(Member(name))

    def kill(self, name: str, noticed: bool) -> None:
        process = self.processes.pop(name)
        if self.daemon is not None:
            if noticed:
                for message in process.up:
                    self.feed(self.daemon.receive(message, self.now))
                self.feed(self.daemon.lose(name, "killed", self.now))
            self.feed(self.daemon.gone(f"p-{name}", self.now) if noticed else [])

    def breaks(self, name: str) -> None:
        """The sidecar of the newest generation dies at this member."""
        process = self.processes[name]
        generation = max(process.sidecars)
        process.sidecars.discard(generation)
        self.act(name, process.machine.broken(generation, "died"))

    # ---- the network

    def connect(self, name: str) -> None:
        process = self.processes[name]
        process.connected = True
        machine = process.machine
        generation = machine.ring.generation if machine.ring else None
        hello = Hello(
            member=name,
            pilot=f"p-{name}",
            training="t",
            node=f"n-{name}",
            address=name,
            pid=1,
            generation=generation,
            closed=machine.closed,
        )
        process.up.append(hello)
        machine.offers = len(self.disk)
        process.up.append(Warm(member=name, signature="s", offers=len(self.disk), batches=Batches(1, 1, 1)))
        process.down.append(Welcome(incarnation=self.incarnation, beat_seconds=0.25, exit_budget=0.5, orphan_limit=300))

    def feed(self, done: list[effect.Effect]) -> None:
        for item in done:
            if isinstance(item, effect.Persist):
                assert self.record is None or item.record.generation > self.record.generation
                self.record = item.record
            elif isinstance(item, effect.Send) and item.member in self.processes and self.processes[item.member].connected:
                self.processes[item.member].down.append(item.message)

    def up(self, name: str) -> None:
        message = self.processes[name].up.pop(0)
        if self.daemon is not None:
            self.feed(self.daemon.receive(message, self.now))

    def down(self, name: str) -> None:
        process = self.processes[name]
        message = process.down.pop(0)
        process.machine.offers = len(self.disk)
        self.act(name, process.machine.receive(message))

    def act(self, name: str, actions: list[object]) -> None:
        process = self.processes[name]
        for action in actions:
            match action:
                case Send(message):
                    if process.connected:
                        process.up.append(message)
                case Form(propose):
                    process.sidecars.add(propose.generation)
                case Kill(generation):
                    process.sidecars = {kept for kept in process.sidecars if kept > generation}
                    process.words = None
                case Drop(generation):
                    process.sidecars.discard(generation)
                case Probe(generation, _):
                    process.up.append(Withdrawn(member=name, generation=generation))
                case End(_):
                    self.processes.pop(name, None)

    # ---- the ring

    def can_form(self, name: str) -> bool:
        machine = self.processes[name].machine
        if machine.next is None or machine._formed or machine.next.generation not in self.processes[name].sidecars:
            return False
        return all(
            seat.member in self.processes and machine.next.generation in self.processes[seat.member].sidecars for seat in machine.next.seats
        )

    def form(self, name: str) -> None:
        machine = self.processes[name].machine
        assert machine.next is not None
        self.act(name, machine.formed(machine.next.generation))

    def can_move(self, name: str) -> bool:
        machine = self.processes[name].machine
        if machine.ring is None or machine.transfer is None or machine.ring.generation not in self.processes[name].sidecars:
            return False
        transfer: Commit = machine.transfer
        if name not in transfer.receivers:
            return True
        return machine.ring.generation in self.offered

    def move(self, name: str) -> None:
        process = self.processes[name]
        machine = process.machine
        assert machine.ring is not None
        assert machine.transfer is not None
        transfer, generation = machine.transfer, machine.ring.generation
        if name == transfer.source:
            if transfer.closed is not None and machine.closed != transfer.closed:
                assert len(self.disk) >= transfer.closed
                assert not any(len(other.history) > transfer.closed for other in self.live_in_touch()), (
                    "began again from disk beside a survivor"
                )
                process.history = self.disk[: transfer.closed]
                self.settled = self.settled[: transfer.closed]
            self.offered[generation] = (len(process.history), process.history)
        if name in transfer.receivers:
            process.history = self.offered[generation][1]
        elif transfer.closed is not None:
            assert len(process.history) == transfer.closed
        self.act(name, machine.received(len(process.history)))
        assert machine.closed == len(process.history)

    def live_in_touch(self) -> list[Process]:
        return [process for process in self.processes.values() if process.machine.ring is not None and process.machine.transfer is None]

    def enter(self, name: str) -> None:
        process = self.processes[name]
        machine = process.machine
        assert machine.ring is not None
        assert machine.closed is not None
        process.words = machine.words()
        self.words.setdefault((machine.ring.generation, machine.closed + 1), {})[name] = process.words

    def can_close(self, name: str) -> bool:
        process = self.processes[name]
        machine = process.machine
        if process.words is None or not machine.ready or machine.ring is None or machine.closed is None:
            return False
        if machine.ring.generation not in process.sidecars:
            return False
        words = self.words.get((machine.ring.generation, machine.closed + 1), {})
        return all(seat.member in words for seat in machine.ring.seats)

    def close(self, name: str, halted_meanwhile: bool) -> None:
        process = self.processes[name]
        machine = process.machine
        assert machine.ring is not None
        assert machine.closed is not None
        generation, step = machine.ring.generation, machine.closed + 1
        words = list(self.words[generation, step].values())
        sums = Words(sum(w.hold for w in words), sum(w.stop for w in words), sum(w.save for w in words))
        if not machine.apply(generation):
            return
        # That everybody has put in words for this step settles all before it.
        self.settle(process.history)
        if halted_meanwhile and process.down and isinstance(process.down[0], Message):
            self.down(name)
            if name not in self.processes:
                return
        process.history = (*process.history, (step, generation))
        process.words = None
        size = len(machine.ring.seats)
        saving = sums.save == size
        self.act(name, machine.close(sums))
        if saving:
            self.slices.setdefault((generation, step), set()).add(name)
            if len(self.slices[generation, step]) == size and step > len(self.disk):
                self.disk = process.history

    def settle(self, history: History) -> None:
        known = self.settled
        assert history[: len(known)] == known[: len(history)], f"two histories: {known} and {history}"
        if len(history) > len(known):
            self.settled = history
        assert [step for step, _ in self.settled] == list(range(1, len(self.settled) + 1))

    def depart(self, name: str) -> None:
        process = self.processes[name]
        if process.connected:
            process.up.append(Goodbye(member=name, closed=process.machine.closed))
        while process.connected and process.up and self.daemon is not None:
            self.up(name)
            if name not in self.processes:
                return
        self.processes.pop(name)

    def beat(self, name: str) -> None:
        process = self.processes[name]
        machine = process.machine
        generation = machine.ring.generation if machine.ring else None
        process.up.append(Beat(member=name, generation=generation, closed=machine.closed, entered=process.words is not None, spares=1))

    def tick(self, seconds: float) -> None:
        self.now += seconds
        if self.daemon is not None:
            self.feed(self.daemon.tick(self.now))

    # ---- scheduling

    def enabled(self) -> list[tuple[str, ...]]:
        """What can happen without a fault."""
        events: list[tuple[str, ...]] = []
        for name, process in self.processes.items():
            machine = process.machine
            if self.daemon is not None and not process.connected:
                events.append(("connect", name))
            if process.connected:
                events += [("up", name)] * bool(process.up) + [("down", name)] * bool(process.down) + [("beat", name)]
            if self.can_form(name):
                events.append(("form", name))
            if self.can_move(name):
                events.append(("move", name))
            if machine.ready and process.words is None:
                events.append(("enter", name))
            if self.can_close(name):
                events.append(("close", name))
            if machine.left or (machine.stopped and machine.settled >= (machine.closed or 0)):
                events.append(("depart", name))
        return events

    def run(self, event: tuple[str, ...]) -> None:
        kind, *rest = event
        if kind == "close":
            self.close(rest[0], False)
        elif kind == "close-late":
            self.close(rest[0], True)
        else:
            getattr(self, kind)(*rest)
        self.check()

    def check(self) -> None:
        """No two processes that step hold different settled steps, and nobody steps in a generation that is not the highest committed."""
        for process in self.processes.values():
            history = process.history
            common = min(len(history), len(self.settled))
            if process.machine.ring is not None and process.machine.transfer is None:
                assert history[:common] == self.settled[:common], "a member of a ring holds another history"
            assert [step for step, _ in history] == list(range(1, len(history) + 1))

    def fair(self, rounds: int) -> None:
        """Let everything happen that can, in turn."""
        for _ in range(rounds):
            for kind in ("connect", "up", "down", "form", "move", "enter", "close", "depart", "beat"):
                for event in [event for event in self.enabled() if event[0] == kind]:
                    if event[1] in self.processes and event in self.enabled():
                        self.run(event)
            self.tick(0.05)


FAULTS = ("join", "kill", "kill-silently", "break", "leave", "daemon", "save", "batch", "late", "tick")


def play(world: World, choices: list[tuple[int, int]]) -> None:
    """Turn numbers into events: mostly what can happen anyway, sometimes a fault."""
    for kind, pick in choices:
        names = list(world.processes)
        if kind < len(FAULTS):
            fault(world, FAULTS[kind], names, pick)
        else:
            events = world.enabled()
            if events:
                world.run(events[pick % len(events)])
            else:
                world.tick(0.1)


def fault(world: World, kind: str, names: list[str], pick: int) -> None:
    name = names[pick % len(names)] if names else ""
    if kind == "join" and len(names) < 6:
        world.join()
    elif kind == "tick":
        world.tick((0.1, 0.4, 1.0, 3.0)[pick % 4])
    elif kind == "daemon":
        world.kill_daemon() if world.daemon is not None else world.start_daemon()
    elif kind == "save" and world.daemon is not None:
        world.feed(world.daemon.save())
    elif kind == "batch" and world.daemon is not None:
        world.feed(world.daemon.prefer((pick % 4 + 1, pick % 3 + 1), world.now))
    elif name:
        member_fault(world, kind, name)
    world.check()


def member_fault(world: World, kind: str, name: str) -> None:
    process = world.processes[name]
    if kind in ("kill", "kill-silently"):
        world.kill(name, kind == "kill")
    elif kind == "break" and process.sidecars:
        world.breaks(name)
    elif kind == "leave" and world.daemon is not None:
        world.act(name, process.machine.leave("signal", 5.0, 0.1))
    elif kind == "late" and world.can_close(name):
        world.run(("close-late", name))


EVENTS = st.lists(st.tuples(st.integers(0, 59), st.integers(0, 63)), max_size=400)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(1, 4), EVENTS)
def test_settled_steps_are_never_skipped_doubled_or_split(members: int, choices: list[tuple[int, int]]) -> None:
    world = World()
    for _ in range(members):
        world.join()
    world.fair(12)
    assert world.settled, "the ring never began"
    play(world, choices)


@settings(max_examples=EXAMPLES // 2, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(1, 4), EVENTS)
def test_the_ring_goes_on_once_the_faults_have_ended(members: int, choices: list[tuple[int, int]]) -> None:
    world = World()
    for _ in range(members):
        world.join()
    world.fair(12)
    play(world, choices)
    if world.daemon is None:
        world.start_daemon()
    world.join()
    world.fair(900)
    before = len(world.settled)
    world.fair(30)
    assert len(world.settled) > before, "no step is settled any more"
    inside = [process for process in world.processes.values() if process.machine.ring is not None]
    assert len(inside) == len(world.processes)


def test_a_ring_of_three_steps_without_any_fault() -> None:
    world = World()
    for _ in range(3):
        world.join()
    world.fair(60)
    assert len(world.settled) > 10
    assert all(len(process.machine.ring.seats) == 3 for process in world.processes.values() if process.machine.ring)
