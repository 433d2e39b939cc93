"""One training as the coordinator runs it: its specification, its membership, its history."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from commensal.messages import Batches, Warm
from commensald.coordinator import MemberStatus, TrainingStatus
from commensald.coordinator.history import History
from commensald.coordinator.membership import Membership
from commensald.coordinator.roster import Entry
from commensald.trainings import TrainingSpec


class Course(msgspec.Struct):
    """Everything of one training."""

    spec: TrainingSpec
    public_key: str
    membership: Membership
    history: History
    signature: str = ""
    batches: Batches | None = None
    """What its steps may have, once a member has said so."""
    failure: str | None = None
    told_finished: bool = False
    announce_at: float | None = None
    """When to try again to say in its folder where the coordinator is."""
    given: dict[str, float] = msgspec.field(default_factory=dict)
    """When a pilot was first told to run it."""
    joined: set[str] = msgspec.field(default_factory=set)
    """Members whose processes said hello and have not yet ended."""

    def same_model(self, member: str, warm: Warm) -> bool:
        """Whether a member has built what the others train; the first that is warm says what that is."""
        others = any(entry.warm for name, entry in self.membership.members.items() if name != member)
        if not others:
            self.signature, self.batches = warm.signature, warm.batches
        return self.signature == warm.signature and self.batches == warm.batches

    def warmed(self, pilot: str, at: float) -> None:
        """A pilot's member has closed its first step."""
        given = self.given.pop(pilot, None)
        if given is not None:
            self.history.pace.warmed(at - given)

    def status(self, starting: Collection[str]) -> TrainingStatus:
        """What is known of it; ``starting`` are the nodes whose pilots have been told to run it."""
        history, membership = self.history, self.membership
        return TrainingStatus(
            training=self.spec.name,
            generation=membership.ring.generation if membership.ring else None,
            members=tuple(_status(member, entry) for member, entry in membership.members.items()),
            starting=len(set(starting) - {entry.hello.node for entry in membership.members.values()}),
            settled=history.settled,
            samples=history.samples,
            epoch=history.epoch,
            loss=history.loss,
            batch=history.batch,
            recent_loss=history.pace.losses.recent,
            node_hours=history.pace.node_seconds / 3600,
            noise_scale=history.pace.noise_scale,
            measured=history.measured,
            checkpoint=history.checkpoint,
            checkpoint_error=history.checkpoint_error,
            steps_lost=history.steps_lost,
            failure=self.failure,
            finished=membership.finished,
        )


def _status(member: str, entry: Entry) -> MemberStatus:
    hello = entry.hello
    return MemberStatus(member=member, pilot=hello.pilot, node=hello.node, state=entry.state, closed=entry.closed, speed=entry.speed)
