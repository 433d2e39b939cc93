"""A member's thread to the coordinator: messages, heartbeats, sidecars, signals.

It owns the socket and reads all sidecars, so that membership goes on while the trainer computes. What it learns it puts into the pure
:class:`commensal.member.Member` under ``lock``, carries out what that asks for, and wakes the trainer, which waits in :meth:`wait_for`.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import zmq

from commensal import deadline, leaving
from commensal.identity import Identity, Progress
from commensal.line import Line
from commensal.member import Action, Drop, End, Form, Kill, Member, Probe, Send
from commensal.messages import (
    Batches,
    Beat,
    Deadline,
    Generation,
    Hello,
    Message,
    PeerPort,
    Port,
    Report,
    Seat,
    Settled,
    SettledStep,
    Warm,
    Welcome,
    Withdrawn,
)
from commensal.rendezvous import coordinator
from commensal.ring.buffers import Memory
from commensal.ring.client import Spares
from commensal.ring.generations import Generations
from commensal.ring.interface import address_towards
from commensal.ring.probe import dead, listen, unreachable

FENCED = 75
"""Exit code of a member that ends as if lost (EX_TEMPFAIL, sysexits.h): the launcher brings a newcomer."""
FAILED = 70
"""Exit code when the link itself cannot go on (EX_SOFTWARE)."""
POLL_SECONDS = 0.1
REPORT_STEPS = 256
HANG_UP_SECONDS = 1.0
ALONE_SECONDS = 0.5
STEADY_SECONDS = 1.0


class Link(threading.Thread):
    """Runs until the process ends. Everything public is used under ``lock``, or says otherwise."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(name="commensal-link", daemon=True)
        self.identity = identity
        self.machine = Member(identity.member)
        self.lock = threading.RLock()
        self.progress = Progress()
        self.reports: deque[SettledStep] = deque()
        """Settled steps that the coordinator is not known to have."""
        self.offers: Callable[[], int] = lambda: 0
        self.memory: Memory | None = None
        self.done = False
        """The training is over for this process: nothing fences it any more."""
        self._news = threading.Condition(self.lock)
        self._warm: Warm | None = None
        self._outbox: deque[Message] = deque()
        self._welcome = Welcome(incarnation=0, beat_seconds=0.25, exit_budget=0.5, orphan_limit=300.0)
        self._beat_due = 0.0
        self._asked_at: float | None = None
        self._told = False
        self._hanging_up = False
        self._minded = 0.0
        self._steady: tuple[Generation | None, float] = (None, 0.0)
        self.started = threading.Event()
        self._wake, self.waker = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self.waker, False)

    # ---- for the trainer

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait, holding ``lock`` once, until ``condition()`` is true."""
        while not condition():
            self._news.wait(POLL_SECONDS)

    def act(self, actions: list[Action]) -> None:
        """Carry out what the machine asks for."""
        for action in actions:
            match action:
                case Send(message):
                    self.send(message)
                case Form(propose):
                    assert self.memory is not None
                    self.generations.form(propose, self.memory)
                case Kill(generation):
                    self.generations.kill(generation)
                case Drop(generation):
                    self.generations.drop(generation)
                case Probe(generation, seats):
                    threading.Thread(target=self._probe, args=(generation, seats), daemon=True).start()
                case End(reason):
                    self._fenced(reason)
        self.changed()

    def changed(self) -> None:
        """Something about this member is new: say so at once."""
        self._beat_due = 0.0
        self._news.notify_all()
        self.wake()

    def send(self, message: Message) -> None:
        """Send as soon as there is anybody to hear."""
        self._outbox.append(message)
        self.wake()

    def warm(self, signature: str, batches: Batches) -> None:
        """The model is built: take part."""
        self._warm = Warm(member=self.identity.member, signature=signature, offers=self.offers(), batches=batches)
        self.send(self._warm)

    def wake(self) -> None:
        """Let the thread look around now. Any thread, no lock needed."""
        try:
            os.write(self.waker, b"\0")
        except BlockingIOError:
            return

    @property
    def out_of_touch(self) -> bool:
        """There is no coordinator to hear us."""
        return not self._line.up

    def hang_up(self) -> None:
        """Say what is still to be said and end the thread. Without ``lock``."""
        self._hanging_up = True
        self.wake()
        self.join(HANG_UP_SECONDS)

    def exit(self, code: int) -> None:
        """End this process now; its sidecars are killed by its death. Any thread."""
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    # ---- the thread

    def run(self) -> None:
        """Look after everything until :meth:`hang_up`."""
        try:
            self._open()
            self._serve()
        except BaseException:
            # A trainer without its link would wait for ever: better to fail where everybody sees it.
            traceback.print_exc()
            self.exit(FAILED)

    def _open(self) -> None:
        self._line = Line(Path(self.identity.folder), time.monotonic())
        host, _, port = coordinator(Path(self.identity.folder)).address.removeprefix("tcp://").rpartition(":")
        address = address_towards(host, int(port))
        self._listener = listen(address)
        self._address = f"{address}:{self._listener.getsockname()[1]}"
        # Sidecars die with the thread that started them, so it is this one that starts them all.
        self.generations = Generations(self.identity.member, Spares(self.identity.transport, address, oversubscribed=crowded()))
        self.started.set()

    def _serve(self) -> None:
        while not self._hanging_up:
            self._wait()
            with self.lock:
                self._look(time.monotonic())
        with self.lock:
            self._part()

    def _part(self) -> None:
        """The last words of this member. The first of the ring may have gone without a report: whoever knows a settled step tells it."""
        self._send_report()
        self._say()
        self._line.close()

    def _wait(self) -> None:
        poller = zmq.Poller()
        poller.register(self._wake, zmq.POLLIN)
        poller.register(self._listener, zmq.POLLIN)
        self._line.watch(poller)
        with self.lock:
            for descriptor in self.generations.filenos():
                poller.register(descriptor, zmq.POLLIN)
            due = self._beat_due - time.monotonic()
        poller.poll(int(max(0.0, min(due, POLL_SECONDS)) * 1000) + 1)

    def _look(self, now: float) -> None:
        self._drain()
        self._sidecars()
        if self._line.tend(now):
            self._introduce()
        for message in self._line.receive():
            self._obey(message)
        self._leave_in_time(now)
        self._mind_the_others(now)
        self._beat(now)
        self._say()
        self._refill(now)

    def _refill(self, now: float) -> None:
        """Start spares anew once nothing has changed for a while: changes come in bursts, and starting costs what leaving needs."""
        ring = self.machine.ring.generation if self.machine.ring is not None and self.machine.transfer is None else None
        if ring != self._steady[0]:
            self._steady = (ring, now)
        elif self.machine.next is None and now - self._steady[1] > STEADY_SECONDS:
            self.generations.refill()

    def _say(self) -> None:
        while self._outbox and self._line.send(self._outbox[0]):
            self._outbox.popleft()

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._wake, 4096)
        with suppress(BlockingIOError):
            self._listener.accept()[0].close()

    def _sidecars(self) -> None:
        for event in self.generations.collect():
            match event:
                case Port():
                    self.send(event)
                case Generation():
                    if self.machine.closed is None:
                        self.machine.offers = self.offers()
                    self.act(self.machine.formed(event))
                case (generation, reason):
                    self.generations.drop(generation)
                    self.act(self.machine.broken(generation, reason))
        self._news.notify_all()

    def _introduce(self) -> None:
        """A connection has come up: say who we are and what we hold; what could not be said before is stale."""
        machine, identity = self.machine, self.identity
        self._outbox.clear()
        self.send(
            Hello(
                member=identity.member,
                pilot=identity.pilot,
                training=identity.training,
                node=identity.node,
                address=self._address,
                pid=os.getpid(),
                generation=machine.ring.generation if machine.ring else None,
                closed=machine.closed,
            )
        )
        if self._warm is not None:
            self.send(self._warm)
        if machine.stopped:
            self.act(machine.settle())
        self._told = False

    def _obey(self, message: Message) -> None:
        match message:
            case Deadline(seconds=seconds):
                deadline.tell(seconds)
            case PeerPort():
                self.generations.give(message)
            case _:
                if isinstance(message, Welcome):
                    self._welcome = message
                if isinstance(message, Settled):
                    self._forget_reports(message.closed)
                self.act(self.machine.receive(message))  # type: ignore[arg-type]

    def _mind_the_others(self, now: float) -> None:
        """With no daemon to say so, a ring that waits finds out by itself that a member is dead."""
        ring, entered_at = self.machine.ring, self.progress.entered_at
        waits = ring is not None and entered_at is not None and now - entered_at > ALONE_SECONDS
        if ring is None or not waits or self._line.up or now < self._minded + ALONE_SECONDS:
            return
        self._minded = now
        others = tuple(seat for seat in ring.seats if seat.member != self.identity.member)
        threading.Thread(target=self._look_for_dead, args=(ring.generation, others), daemon=True).start()

    def _look_for_dead(self, generation: Generation, others: tuple[Seat, ...]) -> None:
        gone = dead(others)
        if gone:
            with self.lock:
                self.act(self.machine.broken(generation, f"{', '.join(gone)} is dead"))

    def _beat(self, now: float) -> None:
        if now < self._beat_due:
            return
        self._beat_due = now + self._welcome.beat_seconds
        machine, progress = self.machine, self.progress
        self.report()
        beat = Beat(
            member=self.identity.member,
            generation=machine.ring.generation if machine.ring else None,
            closed=machine.closed,
            closed_ago=None if progress.closed_at is None else now - progress.closed_at,
            entered=progress.entered_at is not None,
            moved=progress.moved,
            speed=progress.speed,
            deadline=deadline.remaining(),
            spares=self.generations.spares,
            trouble=self.generations.trouble,
        )
        self._line.send(beat)

    def report(self) -> None:
        """The first of the ring tells of settled steps, again and again until the coordinator is known to have them."""
        ring = self.machine.ring
        if self.done or (ring is not None and ring.seats[0].member == self.identity.member):
            self._send_report()

    def _send_report(self) -> None:
        if self.reports:
            now = time.monotonic()
            steps = tuple(msgspec.structs.replace(step, closed_ago=now - step.closed_ago) for step in list(self.reports)[:REPORT_STEPS])
            self._line.send(Report(member=self.identity.member, steps=steps))

    def _forget_reports(self, closed: int) -> None:
        while self.reports and self.reports[0].step <= closed:
            self.reports.popleft()

    def _probe(self, generation: Generation, seats: tuple[Seat, ...]) -> None:
        found = unreachable(seats)
        with self.lock:
            self.send(Withdrawn(member=self.identity.member, generation=generation, unreachable=found))

    # ---- leaving

    def _leave_in_time(self, now: float) -> None:
        remaining = deadline.remaining()
        near = remaining is not None and remaining < leaving.reserve(self.progress.save_seconds, self.progress.step_seconds)
        if self._asked_at is None and (near or deadline.asked() is not None):
            self._asked_at = now
        if self.done or self._asked_at is None:
            return
        machine = self.machine
        match leaving.verdict(
            asked_ago=now - self._asked_at,
            told=self._told,
            holds_state=machine.closed is not None,
            others_stay=machine.others_stay,
            saving=machine.stopped or self.progress.saving,
            remaining=remaining,
            budget=self._welcome.exit_budget,
        ):
            case leaving.Verdict.GO:
                self._part()
                self.exit(0 if machine.closed is None else FENCED)
            case leaving.Verdict.ASK:
                self._told = True
                reason = "signal" if deadline.asked() is not None else "deadline"
                self.act(machine.leave(reason, remaining or 0.0, self.progress.save_seconds))
            case leaving.Verdict.STAY:
                return

    def _fenced(self, reason: str) -> None:
        if self.done:
            return
        print(f"commensal: {self.identity.member} leaves: {reason}", file=sys.stderr, flush=True)
        self.exit(FENCED)


def crowded() -> bool:
    """Whether members may outnumber cores here: several of them on one host (tests, the demo), or a single core."""
    return bool(os.environ.get("COMMENSAL_CROWDED")) or (os.cpu_count() or 1) < 4
