"""The coordinator's shell: one socket for all pilots and members, one pure membership a training."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from commensal.messages import (
    Batches,
    Deadline,
    Dismiss,
    Hello,
    Leaving,
    Measured,
    Message,
    PeerPort,
    PilotDone,
    PilotHello,
    Port,
    Report,
    Saved,
    SaveFailed,
    Settled,
    Warm,
    Welcome,
)
from commensald.coordinator import GenerationRecord, Limits, TrainingStatus
from commensald.coordinator.course import Course
from commensald.coordinator.effects import Effect, Persist, Send, Tell
from commensald.coordinator.history import Counts, History
from commensald.coordinator.membership import Membership
from commensald.coordinator.pace import Seen
from commensald.coordinator.pilots import Posts
from commensald.coordinator.rendezvous import Rendezvous, announce, last_port, withdraw
from commensald.coordinator.switchboard import Arrival, Switchboard
from commensald.events import Emit
from commensald.keys import key_pair
from commensald.strict import InputError
from commensald.trainings import TrainingSpec

log = logging.getLogger(__name__)
TICK_SECONDS = 0.05
ANNOUNCE_SECONDS = 5.0
FENCED = 75
"""Exit code of a member that was sent away (EX_TEMPFAIL): no failure of its script. Nor is an end by a signal."""


class Keeper(Counts, Protocol):
    """What must survive the daemon (the ledger)."""

    def incarnation(self) -> int: ...
    def record_generation(self, record: GenerationRecord) -> None: ...
    def generation(self, training: str) -> GenerationRecord | None: ...


class Coordinator:
    """All rings of one daemon. Methods are called from its event loop only.

    Raises StandDown in :meth:`admit` when a later daemon coordinates that training already.
    """

    def __init__(self, *, folder: Path, ledger: Keeper, emit: Emit, limits: Limits, bind: str, pilot_folder: Path) -> None:
        self._folder, self._ledger, self._emit, self._limits = folder, ledger, emit, limits
        self._bind, self._pilot_folder = bind, pilot_folder
        self._incarnation = ledger.incarnation()
        self._pair = key_pair(folder)
        self._pilot_key = key_pair(pilot_folder).public
        self._courses: dict[str, Course] = {}
        self._wanted: Mapping[str, frozenset[str]] = {}
        self._posts = Posts(self._incarnation)
        self._routes: dict[str, bytes] = {}
        self._owners: dict[bytes, tuple[str, str]] = {}
        """Connection -> (training or "", member or pilot)."""
        self._tasks: list[asyncio.Task[None]] = []
        self._address = ""
        self.on_failure: Callable[[str, str], None] = lambda training, tail: None
        self._departed = -math.inf
        self.on_change: Callable[[], None] = lambda: None
        """A pilot or member has come or gone: the time to decide anew."""

    # ---- life

    async def start(self) -> None:
        """Listen, and say where in the pilots' folder."""
        self._board = Switchboard(self._pair, self._admits)
        port = self._board.bind(self._bind, last_port(self._pilot_folder))
        self._address = f"tcp://{self._bind}:{port}"
        self._announce(self._pilot_folder)
        loops: tuple[Callable[[], Awaitable[None]], ...] = (self._board.serve_keys, self._listen, self._watch, self._tick)
        self._tasks = [asyncio.ensure_future(self._guard(loop)) for loop in loops]

    async def close(self) -> None:
        """Let go of the socket; rings go on without us."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._board.close()

    async def _guard(self, loop: Callable[[], Awaitable[None]]) -> None:
        try:
            await loop()
        except asyncio.CancelledError:
            raise
        except BaseException:
            # Half a coordinator would be worse than none: members hold on until the next one comes.
            log.exception("the coordinator cannot go on")
            os._exit(70)

    def _announce(self, folder: Path, training: str = "") -> None:
        there = Rendezvous(address=self._address, server_key=self._pair.public, incarnation=self._incarnation, training=training)
        announce(folder, there)

    def _admits(self, key: str) -> bool:
        return key == self._pilot_key or any(course.public_key == key for course in self._courses.values())

    # ---- what the service asks for

    def admit(self, spec: TrainingSpec, public_key: str) -> None:
        """Coordinate this training: its members may connect with this key.

        Raises InputError when its folder cannot be written now; it is coordinated all the same, and the folder tried again.
        """
        now = time.monotonic()
        membership = Membership(spec.name, self._incarnation, self._limits, now, self._ledger.generation(spec.name))
        self._courses[spec.name] = Course(spec, public_key, membership, History(spec.name, self._ledger, self._emit, now))
        self._announce_training(self._courses[spec.name])

    def _announce_training(self, course: Course) -> None:
        course.announce_at = time.monotonic() + ANNOUNCE_SECONDS
        self._announce(Path(course.spec.folder), course.spec.name)
        course.announce_at = None

    def retire(self, training: str) -> None:
        """Forget this training; members that are left are sent away."""
        course = self._courses.pop(training)
        course.history.keep_pace()
        withdraw(Path(course.spec.folder), self._address)
        for member in list(course.membership.members):
            self._carry_out(course, course.membership.lose(member, "the training has ended", time.monotonic()))

    def assign(self, nodes: Mapping[str, frozenset[str]]) -> None:
        """Training -> the nodes that are to work for it; members elsewhere are asked to leave."""
        self._wanted = nodes
        for name, course in self._courses.items():
            wanted = nodes.get(name, frozenset())
            away = [member for member, entry in course.membership.members.items() if entry.hello.node not in wanted]
            for member in away:
                self._carry_out(course, course.membership.leave(member, "its node is wanted elsewhere", time.monotonic()))

    def deadline(self, pilot: str, seconds: float) -> None:
        """The daemon's view of when a pilot's node is taken."""
        for course in self._courses.values():
            for member, entry in course.membership.members.items():
                if entry.hello.pilot == pilot:
                    self._send(member, Deadline(seconds=seconds))

    def greeted(self, pilot: str) -> bool:
        """Whether this pilot has said hello to this daemon, or one of its members has."""
        members = (entry for course in self._courses.values() for entry in course.membership.members.values())
        return self._posts.knows(pilot) or any(entry.hello.pilot == pilot for entry in members)

    def departed_seconds(self) -> float:
        """Since somebody was last seen to leave, by a signal or a dropped connection: a primary job may be taking nodes."""
        return time.monotonic() - self._departed

    def gone(self, pilot: str) -> None:
        """The scheduler says that this pilot has ended."""
        self._posts.gone(pilot)
        for course in list(self._courses.values()):
            self._carry_out(course, course.membership.gone(pilot, time.monotonic()))

    def stop(self, training: str, reason: str) -> None:
        """Save, then let all members leave. A script that has not joined yet holds nothing and is not waited for: it may never do so."""
        course = self._courses.get(training)
        if course is not None:
            for pilot in self._posts.unjoined(training, course.membership.members):
                self.dismiss(pilot, reason)
            self._carry_out(course, course.membership.pause(reason, True, time.monotonic()))

    def resume(self, training: str) -> None:
        """Undo :meth:`stop`."""
        course = self._courses.get(training)
        if course is not None:
            course.failure = None
            self._carry_out(course, course.membership.resume(time.monotonic()))

    def dismiss(self, pilot: str, reason: str) -> None:
        """End an idle pilot."""
        self._send(pilot, Dismiss(reason=reason))

    def pilots(self) -> dict[str, str]:
        """Pilots that are connected, and their nodes."""
        return {pilot: node for pilot, node in self._posts.nodes().items() if pilot in self._routes}

    def nodes(self, training: str) -> frozenset[str]:
        """Nodes that its members hold, or are about to."""
        course = self._courses[training]
        return frozenset(entry.hello.node for entry in course.membership.members.values()) | self._posts.starting(training)

    def batches(self, training: str) -> Batches | None:
        """The batches that its steps may have, once a member has said so."""
        return self._courses[training].batches

    def pace(self, training: str) -> Seen:
        """How fast it steps."""
        return self._courses[training].history.pace.seen()

    def prefer(self, training: str, batches: tuple[int, ...]) -> None:
        """Its rings of 1, 2, ... members should have these batches."""
        course = self._courses[training]
        if batches != course.membership.batches:
            self._carry_out(course, course.membership.prefer(batches, time.monotonic()))

    def status(self, training: str) -> TrainingStatus:
        """What is known of a training."""
        return self._courses[training].status(self._posts.starting(training))

    # ---- what comes in

    async def _listen(self) -> None:
        while True:
            arrival = await self._board.receive()
            if isinstance(arrival, Arrival):
                self._dispatch(arrival, time.monotonic())
            else:
                log.warning("unreadable message: %s", arrival)

    async def _watch(self) -> None:
        while True:
            peer = await self._board.lost()
            training, name = self._owners.pop(peer, ("", ""))
            self._departed = time.monotonic()
            if self._routes.get(name) == peer:
                del self._routes[name]
                if training in self._courses:
                    course = self._courses[training]
                    self._carry_out(course, course.membership.lose(name, "the connection dropped", time.monotonic()))
                self.on_change()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            now = time.monotonic()
            for course in list(self._courses.values()):
                self._carry_out(course, course.membership.tick(now))
                if course.announce_at is not None and now >= course.announce_at:
                    with suppress(InputError):
                        self._announce_training(course)
                if course.membership.ring is not None and course.membership.stop is None and course.history.clock.due(now):
                    self._carry_out(course, course.membership.save())

    def _dispatch(self, arrival: Arrival, now: float) -> None:
        message = arrival.message
        if isinstance(message, PilotHello | PilotDone):
            if arrival.key == self._pilot_key:
                self._from_pilot(arrival.peer, message, now)
            return
        training = message.training if isinstance(message, Hello) else self._owners.get(arrival.peer, ("", ""))[0]
        course = self._courses.get(training)
        if course is None or course.public_key != arrival.key:
            return
        if isinstance(message, Hello):
            self._connect(message.member, arrival.peer, course.spec.name)
            self._welcome(message.member)
            course.joined.add(message.member)
            self.on_change()
        if self._owners.get(arrival.peer) == (course.spec.name, message.member):
            self._from_member(course, message, now)

    def _from_pilot(self, peer: bytes, message: PilotHello | PilotDone, now: float) -> None:
        self._connect(message.pilot, peer, "")
        if isinstance(message, PilotDone):
            node = self._posts.node(message.pilot)  # whether it gets another process is decided anew: its pilot may be about to end
            self._wanted = {name: nodes - {node} for name, nodes in self._wanted.items()}
            ours = self._posts.done(message)
            course = self._courses.get(message.training)
            if course is not None:
                self._ended(course, message, ours, now)
            return
        assignment = self._posts.hello(message, self._wanted, {name: course.spec for name, course in self._courses.items()})
        if assignment is not None:
            self._courses[assignment.training].given.setdefault(message.pilot, now)
            self._send(message.pilot, assignment)
        else:
            self.on_change()

    def _ended(self, course: Course, message: PilotDone, ours: bool, now: float) -> None:
        """A training process is gone for certain; one that failed by itself is a failure of its script."""
        self._carry_out(course, course.membership.gone(message.pilot, now))
        course.given.pop(message.pilot, None)
        joined = message.member in course.joined
        course.joined.discard(message.member)
        if message.returncode == 0 and ours and not (joined or course.membership.finished):
            self._failed(course, "the script ended without having made a commensal.Training and iterated over it")
        elif 0 < message.returncode <= 128 and message.returncode != FENCED:
            self._failed(course, message.tail)

    def _failed(self, course: Course, text: str) -> None:
        course.failure = text
        self.on_failure(course.spec.name, text)

    def _from_member(self, course: Course, message: Message, now: float) -> None:
        match message:
            case Report():
                course.history.report(message)
                self._send_all(course, Settled(closed=course.history.settled))
            case Measured():
                course.history.measure(message)
            case Saved():
                course.history.saved(message, now)
            case SaveFailed():
                course.history.save_failed(message, now)
            case Port():
                peer = PeerPort(generation=message.generation, sender=message.member, key=message.key, port=message.port)
                self._send(message.to, peer)
            case Warm() if not self._same_model(course, message):
                return
            case _:
                self._carry_out(course, course.membership.receive(message, now))
        if isinstance(message, Leaving):
            self._departed = now
            self.on_change()

    def _same_model(self, course: Course, message: Warm) -> bool:
        """All members must train the same model; one that does not is sent away, and says why."""
        if course.same_model(message.member, message):
            return True
        text = f"{message.member} has built another model or dataset than the other members"
        self._failed(course, text)
        self._carry_out(course, course.membership.lose(message.member, text, time.monotonic()))
        return False

    # ---- what goes out

    def _carry_out(self, course: Course, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Persist(record):
                    self._ledger.record_generation(record)
                    course.history.keep_pace()
                    if record.closed is not None:
                        course.history.began(record.closed)
                case Send(member, message):
                    self._send(member, message)
                case Tell(kind, fields, ago):
                    self._emit(kind, at=time.time() - ago, **fields)
                    if kind == "member.trouble":
                        log.warning("member %s on %s has no sidecar: %s", fields["member"], fields["node"], fields["text"])
                    if kind == "stay.began":
                        course.warmed(str(fields["pilot"]), time.monotonic() - ago)
        if course.membership.finished and not course.told_finished:
            course.told_finished = True
            self._emit("training.finished", training=course.spec.name)

    def _connect(self, name: str, peer: bytes, training: str) -> None:
        self._routes[name] = peer
        self._owners[peer] = (training, name)

    def _welcome(self, member: str) -> None:
        limits = self._limits
        welcome = Welcome(
            incarnation=self._incarnation,
            beat_seconds=limits.beat_seconds,
            exit_budget=limits.exit_budget,
            orphan_limit=limits.orphan_limit,
        )
        self._send(member, welcome)

    def _send_all(self, course: Course, message: Message) -> None:
        for member in course.membership.members:
            self._send(member, message)

    def _send(self, name: str, message: Message) -> None:
        peer = self._routes.get(name)
        if peer is not None:
            self._board.send(peer, message)
