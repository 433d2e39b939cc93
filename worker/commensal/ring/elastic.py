"""The elastic ring: a member's side of the training loop, while other members come and go."""

from __future__ import annotations

import atexit
import os
import signal
import time
from functools import partial
from pathlib import Path

import msgspec
import torch

from commensal import checkpoint, deadline
from commensal.checkpoint import Snapshot
from commensal.identity import Identity
from commensal.link import Link
from commensal.member import Words
from commensal.messages import Batches, Generation, Goodbye, Measured, Propose, Saved, SaveFailed, Settle, SettledStep
from commensal.ring import Lost, Place, Replica, transfer
from commensal.ring.buffers import Memory
from commensal.saver import Outcome, Saver

WINDOW_BYTES = 8 << 20
LINGER_SECONDS = 0.05
MANIFEST_SECONDS = 10.0
"""How long rank 0 looks for the others' records after its own."""


def connect(batches: Batches) -> Elastic:
    """The ring of this pilot's training process, whose steps may have any of ``batches``."""
    link = Link(Identity.of(os.environ))
    link.start()
    link.started.wait()
    # Until now SIGTERM has simply ended the process, which holds nothing yet: no handler could act while torch is being imported.
    deadline.install()
    signal.set_wakeup_fd(link.waker, warn_on_full_buffer=False)
    return Elastic(link, batches)


class Elastic:
    """A ring.Ring whose generations the coordinator decides."""

    def __init__(self, link: Link, batches: Batches) -> None:
        self._link, self._batches = link, batches
        self._machine = link.machine
        self._folder = Path(link.identity.folder)
        self._saver = Saver(self._write, self._saved)
        self._generation: Generation | None = None
        """The one that the step in flight uses."""
        self._saves_as: tuple[int, int, Generation] = (0, 1, Generation(0, 0))
        self._began = time.monotonic()
        self._size_bytes = 0
        self._complete = False
        self._listed: tuple[str, ...] = ()
        self._found = 0
        link.offers = self._newest

    # ---- the loop

    def memory(self, words: int) -> torch.Tensor:
        with self._link.lock:
            self._link.memory = Memory(words, WINDOW_BYTES)
            return self._link.memory.floats()

    def begin(self, replica: Replica) -> Place | None:
        """Join, switch, recover: whatever it takes to be in a ring that steps. ``None`` when all have stopped after a settled step."""
        link, machine = self._link, self._machine
        with link.lock:
            if self._generation is None:
                link.warm(replica.signature, self._batches)
            while True:
                link.wait_for(lambda: machine.ring is not None or machine.left)
                if machine.left:
                    self._depart()
                if machine.transfer is not None:
                    self._enter(replica)
                elif machine.stopped:
                    if self._stop():
                        return None
                else:
                    break
            self._began = time.monotonic()
            return self._place()

    def _place(self) -> Place:
        ring = self._machine.ring
        assert ring is not None
        self._generation = ring.generation
        speeds = tuple(seat.speed for seat in ring.seats)
        return Place(rank=self._rank(ring), size=len(ring.seats), speeds=speeds, generation=ring.generation, batch=ring.batch)

    def _rank(self, ring: Propose) -> int:
        return [seat.member for seat in ring.seats].index(self._machine.me)

    def reduce(self, low: int, high: int) -> None:
        assert self._generation is not None
        with self._link.lock:
            self._link.generations.reduce(self._generation, low, high)

    def words(self) -> tuple[float, float, float]:
        with self._link.lock:
            words = self._machine.words()
        return words.hold, words.stop, words.save

    def wait(self) -> None:
        assert self._generation is not None
        with self._link.lock:
            self._await(self._generation)

    def claim(self) -> None:
        assert self._generation is not None
        with self._link.lock:
            if not self._machine.apply(self._generation):
                raise Lost("the ring was halted")

    def _await(self, generation: Generation) -> None:
        """Until everything started in this generation has arrived. Raises Lost when it never will."""
        generations, progress = self._link.generations, self._link.progress
        progress.entered_at = time.monotonic()
        self._link.wait_for(lambda: not generations.alive(generation) or generations.arrived(generation))
        progress.entered_at = None
        if not generations.alive(generation):
            raise Lost(f"generation {generation} is gone")

    def closed(self, replica: Replica, hold: float, stop: float, save: float) -> bool:
        link, machine = self._link, self._machine
        with link.lock:
            ring = machine.ring
            assert ring is not None
            size = len(ring.seats)
            first = link.progress.closed_at is None
            link.progress.closed_at = time.monotonic()
            link.progress.step_seconds = max(0.9 * link.progress.step_seconds, time.monotonic() - self._began)
            self._saves_as = (self._rank(ring), size, ring.generation)
            actions = machine.close(Words(hold, stop, save))
            if actions or first or machine.ring is not ring or machine.left:
                link.act(actions)
            last = stop == size and (machine.stop is None or machine.stop.save)
            link.progress.saving = last
            return bool(last or (save == size and not self._saver.busy))

    def worked(self, samples: int, seconds: float) -> None:
        if samples and seconds > 0:
            old, new = self._link.progress.speed, samples / seconds
            self._link.progress.speed = new if old is None else 0.8 * old + 0.2 * new

    # ---- state

    def _enter(self, replica: Replica) -> None:
        """A generation has been entered: bring all its members to one state. Called with the lock held, as is all around it."""
        machine = self._machine
        ring, commit = machine.ring, machine.transfer
        assert ring is not None
        assert commit is not None
        try:
            if commit.source == machine.me and commit.closed is not None and (machine.closed is None or replica.closed != commit.closed):
                self._unlocked(partial(replica.resume, commit.closed))
            if commit.receivers:
                self._transfer(replica, ring, commit.source, machine.me in commit.receivers)
        except Lost:
            return
        if machine.ring is ring:
            self._link.act(machine.received(replica.closed))

    def _transfer(self, replica: Replica, ring: Propose, source: str, receives: bool) -> None:
        memory = self._link.memory
        assert memory is not None
        root = [seat.member for seat in ring.seats].index(source)
        move = partial(self._move, ring.generation, root)
        part = transfer.receive if receives else transfer.send if source == self._machine.me else None
        self._unlocked(partial(part, replica, memory.window, move) if part else partial(transfer.watch, memory.window, move))

    def _unlocked(self, work: partial[None]) -> None:
        """Run long work of the trainer without the lock, which it holds once."""
        self._link.lock.release()
        try:
            work()
        finally:
            self._link.lock.acquire()

    def _move(self, generation: Generation, root: int, size_bytes: int) -> None:
        with self._link.lock:
            self._link.generations.broadcast(generation, root, size_bytes)
            self._await(generation)
            self._link.progress.moved += 1

    def _newest(self) -> int:
        """Steps in the newest checkpoint; looked at in full only when there is another one than last time."""
        listed = checkpoint.listed(self._folder)
        if listed != self._listed:
            found = checkpoint.newest(self._folder)
            self._listed, self._found = listed, 0 if found is None else found.step
        return self._found

    # ---- saving

    def save(self, taken: Snapshot) -> None:
        self._saver.submit(taken)

    def _write(self, taken: Snapshot) -> None:
        rank, size, generation = self._saves_as
        self._size_bytes = sum(tensor.numel() * tensor.element_size() for tensor in taken.tensors)
        checkpoint.write_slice(taken, rank, size, generation, self._folder)
        end = time.monotonic() + (MANIFEST_SECONDS if rank == 0 else 0.0)
        while True:
            written = checkpoint.try_manifest(self._folder, taken.step, generation, size)
            if written is not None or time.monotonic() >= end:
                self._complete = written is not None
                return
            time.sleep(0.02)

    def _saved(self, outcome: Outcome) -> None:
        with self._link.lock:
            me = self._machine.me
            self._link.progress.save_seconds = max(outcome.seconds, 0.9 * self._link.progress.save_seconds)
            if outcome.error is not None:
                self._link.send(SaveFailed(member=me, step=outcome.step, error=str(outcome.error)))
            elif self._complete and self._saves_as[0] == 0:
                self._link.report()
                self._link.send(
                    Saved(
                        member=me,
                        step=outcome.step,
                        seconds=outcome.seconds,
                        stall_seconds=outcome.stall_seconds,
                        size_bytes=self._size_bytes,
                    )
                )

    # ---- telling

    def settled(self, report: SettledStep) -> None:
        with self._link.lock:
            # Kept as the instant of closing; the age is worked out when it is sent.
            self._link.reports.append(msgspec.structs.replace(report, closed_ago=time.monotonic() - report.closed_ago))
            if self._link.done:
                self._link.changed()

    def measured(self, step: int, values: dict[str, float]) -> None:
        with self._link.lock:
            self._link.send(Measured(member=self._machine.me, step=step, values=values))

    def settle(self, replica: Replica) -> None:
        link, machine = self._link, self._machine
        with link.lock:
            if machine.ring is None or machine.settled >= replica.closed:
                return
            closed, ring = replica.closed, machine.ring
            link.send(Settle(member=machine.me, generation=ring.generation, closed=closed))
            link.wait_for(lambda: machine.settled >= closed or machine.ring is not ring)

    # ---- the end

    def _stop(self) -> bool:
        """All members stop after this step: wait until it is settled. False when the ring was lost meanwhile."""
        link, machine = self._link, self._machine
        link.wait_for(lambda: not machine.stopped or machine.settled >= (machine.closed or 0) or link.out_of_touch)
        return machine.stopped

    def depart(self) -> None:
        """This member's part has ended with a settled step: say so and end the process."""
        with self._link.lock:
            self._depart()

    def _depart(self) -> None:
        link = self._link
        link.progress.saving = True
        self._unlocked(partial(self._saver.join))
        if self._machine.left:
            # A neighbour may still be receiving the last words of this member's sidecar.
            self._unlocked(partial(time.sleep, LINGER_SECONDS))
        link.send(Goodbye(member=self._machine.me, closed=self._machine.closed))
        self._unlocked(partial(link.hang_up))
        link.exit(0)

    def abandon(self) -> None:
        with self._link.lock:
            self._link.done = True
            self._link.generations.close()
            self._link.send(Goodbye(member=self._machine.me, closed=self._machine.closed))
        atexit.register(self._link.hang_up)

    def finish(self, replica: Replica) -> None:
        """Wait until the last step is settled, save it, say goodbye; the script goes on after its loop."""
        link, machine = self._link, self._machine
        with link.lock:
            while machine.settled < replica.closed:
                ring = machine.ring
                if ring is None:
                    link.wait_for(lambda: machine.ring is not None)
                elif machine.transfer is not None:
                    self._enter(replica)
                else:
                    link.act(machine.settle())
                    link.wait_for(lambda: machine.settled >= replica.closed or machine.ring is not ring)  # noqa: B023
            if machine.ring is not None:
                self._saves_as = (self._rank(machine.ring), len(machine.ring.seats), machine.ring.generation)
            self._unlocked(partial(self._save_last, replica))
            link.done = True
            link.send(Goodbye(member=machine.me, closed=machine.closed, finished=True))
        atexit.register(link.hang_up)

    def _save_last(self, replica: Replica) -> None:
        self._saver.submit(checkpoint.snapshot(replica))
        self._saver.join()
