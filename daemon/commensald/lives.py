"""The lives of trainings: submitted, paused, backing off after a failure, ended."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from typing import Protocol

import msgspec

from commensal.messages import Batches
from commensald import goals, reconcile
from commensald.config import BackoffSection
from commensald.coordinator import TrainingStatus
from commensald.coordinator.pace import Seen
from commensald.decision import Demand
from commensald.demands import demand
from commensald.events import Emit
from commensald.learning import Learnt, learn
from commensald.ledger import Ledger, TrainingRecord, TrainingState
from commensald.requests import TrainingRow
from commensald.strict import InputError
from commensald.trainings import TrainingSpec, check

log = logging.getLogger(__name__)
LEARN_SECONDS = 5.0
ENDED = frozenset((TrainingState.FINISHED, TrainingState.CANCELLED, TrainingState.FAILED))


class Rings(Protocol):
    """What the service needs of the coordinator."""

    async def start(self) -> None: ...
    async def close(self) -> None: ...
    def admit(self, spec: TrainingSpec, public_key: str) -> None: ...
    def retire(self, training: str) -> None: ...
    def assign(self, nodes: Mapping[str, frozenset[str]]) -> None: ...
    def deadline(self, pilot: str, seconds: float) -> None: ...
    def greeted(self, pilot: str) -> bool: ...
    def departed_seconds(self) -> float: ...
    def gone(self, pilot: str) -> None: ...
    def stop(self, training: str, reason: str) -> None: ...
    def resume(self, training: str) -> None: ...
    def status(self, training: str) -> TrainingStatus: ...
    def batches(self, training: str) -> Batches | None: ...
    def pace(self, training: str) -> Seen: ...
    def prefer(self, training: str, batches: tuple[int, ...]) -> None: ...
    def nodes(self, training: str) -> frozenset[str]: ...


class Lives:
    """Keeps every training's state in the ledger, and the coordinator in step with it."""

    def __init__(self, ledger: Ledger, rings: Rings, config: BackoffSection, owner: str, emit: Emit) -> None:
        self._ledger, self._rings, self._config, self._owner, self._emit = ledger, rings, config, owner, emit
        self._records = {each.spec.name: each for each in ledger.trainings()}
        self._admitted: set[str] = set()
        self._learnt: dict[str, tuple[float, int, Learnt]] = {}
        """When it was worked out, on how many nodes, and what."""
        self._settled_before: dict[str, int] = {}
        """Steps that a training had settled when its script failed last."""

    def admit_all(self) -> None:
        """After a start: give the coordinator every training that has not ended."""
        for each in self._records.values():
            if each.state not in ENDED:
                try:
                    self._admit(each)
                except InputError as error:
                    # One folder that is full or gone must not keep the others from training.
                    log.warning("training %s waits for its folder: %s", each.spec.name, error)

    def reconfigure(self, config: BackoffSection) -> None:
        """The next failure is answered as ``config`` says."""
        self._config = config

    def submit(self, spec: TrainingSpec, public_key: str) -> None:
        """Take a new training. Raises InputError."""
        check(spec, f"training {spec.name}")
        if spec.goal.deadline is not None and spec.goal.deadline <= time.time():
            raise InputError(f"training {spec.name}: goal.deadline: has passed {time.time() - spec.goal.deadline:.0f} s ago")
        if spec.owner != self._owner:
            raise InputError(f"training {spec.name}: this daemon runs trainings of {self._owner}, not of {spec.owner or 'nobody'}")
        known = self._records.get(spec.name)
        if known is not None and known.state not in ENDED:
            raise InputError(f"training {spec.name}: already {known.state}; cancel it first or choose another name")
        owner = next((each for each in self._records.values() if each.state not in ENDED and each.spec.folder == spec.folder), None)
        if owner is not None:
            raise InputError(f"training {spec.name}: folder {spec.folder} belongs to training {owner.spec.name}, and each needs its own")
        if known is not None:
            self._retire(spec.name)
        self._ledger.add_training(spec, public_key, time.time())
        self._reload(spec.name)
        try:
            self._admit(self._records[spec.name])
        except InputError:
            self._set(spec.name, TrainingState.CANCELLED)
            self._retire(spec.name)
            raise
        self._emit("training.submitted", training=spec.name)

    def pause(self, name: str) -> None:
        """Save it and give its nodes back. Raises InputError."""
        record = self._known(name)
        if record.state is not TrainingState.ACTIVE:
            raise InputError(f"training {name}: is {record.state}, only an active one can be paused")
        self._set(name, TrainingState.PAUSED)
        self._rings.stop(name, "paused")

    def resume(self, name: str) -> None:
        """Let it go on. Raises InputError."""
        record = self._known(name)
        if record.state is TrainingState.ACTIVE and record.retry_at is None:
            raise InputError(f"training {name}: is active already")
        if record.state is TrainingState.FINISHED:
            raise InputError(f"training {name}: has finished")
        self._set(name, TrainingState.ACTIVE)
        self._admit(self._records[name])
        self._rings.resume(name)

    def cancel(self, name: str) -> None:
        """End it; its checkpoints stay. Raises InputError."""
        record = self._known(name)
        if record.state in ENDED:
            raise InputError(f"training {name}: is {record.state} already")
        self._set(name, TrainingState.CANCELLED)
        self._rings.stop(name, "cancelled")

    def stop_all(self, reason: str) -> None:
        """Save every active training and let its members leave."""
        for each in self._active():
            self._rings.stop(each.spec.name, reason)

    def resume_all(self) -> None:
        """Undo :meth:`stop_all`."""
        for each in self._active():
            self._rings.resume(each.spec.name)

    def failed(self, name: str, tail: str) -> None:
        """A script of it has failed: back off, twice as long each time in a row; after too many times give up."""
        record = self._records.get(name)
        if record is None or record.state in ENDED:
            return
        config, now = self._config, time.time()
        self._settled_before[name] = self._rings.status(name).settled
        failures, retry_at = reconcile.backoff(record.failures, record.retry_at, now, config.first_seconds, config.most_seconds)
        self._ledger.record_failure(name, failures, retry_at, tail)
        if failures >= config.attempts:
            self._ledger.set_state(name, TrainingState.FAILED)
            self._rings.stop(name, "its script keeps failing")
        self._reload(name)
        log.warning(
            "training %s failed (%d in a row), again in %.0f s: %s", name, failures, retry_at - now, (tail.splitlines() or [""])[-1]
        )
        self._emit("training.failed", training=name, tail=tail, failures=failures)

    def look(self) -> None:
        """Notice what has finished; let the coordinator forget what has ended once its members have left."""
        for name in list(self._admitted):
            if self._records[name].state is TrainingState.ACTIVE:
                self._conclude(name)
            self._forgive(name)
            if self._records[name].state in ENDED and not self._rings.status(name).members:
                self._retire(name)

    def _conclude(self, name: str) -> None:
        """It has finished by itself, or its goal says that it has: then it is saved and its nodes are given back."""
        status, goal = self._rings.status(name), self._records[name].spec.goal
        reason = goals.ended(goal, status.recent_loss, status.node_hours, time.time())
        if status.finished and not (reason or "").startswith(goals.REACHED):
            reason = None  # its last step came before its deadline or its budget's end was seen
        if status.finished or reason is not None:
            self._set(name, TrainingState.FINISHED)
        if reason is not None:
            self._ledger.record_failure(name, 0, None, reason)
            self._reload(name)
            self._emit("training.ended", training=name, reason=reason)
        if reason is not None and not status.finished:
            self._rings.stop(name, reason)

    def _forgive(self, name: str) -> None:
        """A training that steps again after its script had failed is as good as any other."""
        record = self._records[name]
        retried = record.retry_at is not None and time.time() >= record.retry_at
        if record.failures and retried and self._rings.status(name).settled > self._settled_before.get(name, 0):
            self._ledger.record_failure(name, 0, None, "")
            self._reload(name)

    def demands(self, *, draining: bool) -> tuple[Demand, ...]:
        """What each training asks for now, as decide() takes it."""
        now, names = time.time(), sorted(self._admitted)
        return tuple(demand(self._records[name], self._learn(name), self._rings.nodes(name), now, draining=draining) for name in names)

    def _learn(self, name: str) -> Learnt:
        """Anew every few seconds and when it has lost a node; its rings get the batches that are best by now."""
        now, held = time.monotonic(), len(self._rings.nodes(name))
        at, had, before = self._learnt.get(name, (-math.inf, 0, None))
        if before is not None and now - at < LEARN_SECONDS and held >= had:
            return before
        spec, seen, chosen = self._records[name].spec, self._rings.pace(name), before.batches if before else ()
        known = learn(spec, self._rings.batches(name), seen, time.time(), chosen)
        self._learnt[name] = now, held, known
        self._rings.prefer(name, known.batches)
        self._foresee(name, known, before)
        return known

    def _foresee(self, name: str, known: Learnt, before: Learnt | None) -> None:
        """Tell of an outlook that is another one than before."""
        new, old = known.outlook, before.outlook if before else None
        if new is not None and (old is None or (new.nodes, new.in_time, new.note) != (old.nodes, old.in_time, old.note)):
            held = len(self._rings.nodes(name))
            self._emit("training.outlook", training=name, held=held, **msgspec.structs.asdict(new))

    def at_work(self) -> frozenset[str]:
        """Pilots with a member that has not left yet."""
        return frozenset(member.pilot for status in self.statuses() for member in status.members)

    def trainings(self) -> dict[str, str]:
        """Node -> the training that holds it, or is about to."""
        return {node: name for name in self._admitted for node in self._rings.nodes(name)}

    def statuses(self) -> tuple[TrainingStatus, ...]:
        """Of every ring."""
        return tuple(self._rings.status(name) for name in sorted(self._admitted))

    def rows(self, waits: Mapping[str, str]) -> tuple[TrainingRow, ...]:
        """For a listing, in the order of submission; ``waits`` says why a training has no node."""
        return tuple(self._row(each, waits) for each in sorted(self._records.values(), key=lambda each: each.submitted))

    def _row(self, record: TrainingRecord, waits: Mapping[str, str]) -> TrainingRow:
        spec = record.spec
        status = self._rings.status(spec.name) if spec.name in self._admitted else None
        steps, samples = (status.settled, status.samples) if status else self._ledger.settled(spec.name)
        shown = status or self._ledger.pace(spec.name)
        rests = record.state is TrainingState.ACTIVE and record.retry_at is not None and record.retry_at > time.time()
        return TrainingRow(
            name=spec.name,
            state=record.state,
            members=len(status.members) if status else 0,
            starting=status.starting if status else 0,
            min_nodes=spec.min_nodes,
            max_nodes=spec.max_nodes,
            steps=steps,
            samples=samples,
            epoch=shown.epoch,
            loss=shown.loss,
            failures=record.failures,
            retry_in_seconds=record.retry_at - time.time() if rests and record.retry_at is not None else None,
            tail=record.tail,
            checkpoint_error=status.checkpoint_error if status else None,
            outlook=self._learnt[spec.name][2].outlook if spec.name in self._learnt else None,
            waits=waits.get(spec.name, "") if record.state is TrainingState.ACTIVE else "",
            goal_reached=_reached(record),
            folder=spec.folder,
        )

    def _active(self) -> list[TrainingRecord]:
        return [self._records[name] for name in self._admitted if self._records[name].state is TrainingState.ACTIVE]

    def _known(self, name: str) -> TrainingRecord:
        if name not in self._records:
            raise InputError(f"no training named {name}")
        return self._records[name]

    def _set(self, name: str, state: TrainingState) -> None:
        self._ledger.set_state(name, state)
        self._reload(name)

    def _reload(self, name: str) -> None:
        record = self._ledger.training(name)
        assert record is not None
        self._records[name] = record

    def _admit(self, record: TrainingRecord) -> None:
        if record.spec.name not in self._admitted:
            self._admitted.add(record.spec.name)
            self._rings.admit(record.spec, record.public_key)

    def _retire(self, name: str) -> None:
        if name in self._admitted:
            self._rings.retire(name)
            self._admitted.discard(name)
            self._learnt.pop(name, None)


def _reached(record: TrainingRecord) -> bool | None:
    """Whether the loss asked for was reached; ``None`` without one, or before the end."""
    ended = record.state is TrainingState.FINISHED and record.spec.goal.loss is not None
    return record.tail.startswith(goals.REACHED) if ended else None
