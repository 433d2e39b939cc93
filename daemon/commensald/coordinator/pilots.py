"""Which training each pilot works for: pure, from the wanted nodes and what pilots say."""

from __future__ import annotations

from collections.abc import Container, Mapping

import msgspec

from commensal.messages import Assignment, PilotDone, PilotHello
from commensald.trainings import TrainingSpec


class Post(msgspec.Struct):
    """A pilot that is connected: where it is, and what it has been told to run."""

    node: str
    assignment: Assignment | None = None


class Posts:
    """Hands out member names and assignments; asks again get the same answer until the training process has ended."""

    def __init__(self, incarnation: int) -> None:
        self._incarnation = incarnation
        self._posts: dict[str, Post] = {}
        self._made = 0

    def hello(self, message: PilotHello, wanted: Mapping[str, frozenset[str]], specs: Mapping[str, TrainingSpec]) -> Assignment | None:
        """What a pilot without a training process is to run, if anything."""
        post = self._posts.setdefault(message.pilot, Post(message.node))
        post.node = message.node
        training = next((name for name, nodes in wanted.items() if message.node in nodes and name in specs), None)
        if post.assignment is not None and post.assignment.training != training:
            post.assignment = None
        if post.assignment is None and training is not None:
            post.assignment = self._assign(message.pilot, specs[training])
        return post.assignment

    def _assign(self, pilot: str, spec: TrainingSpec) -> Assignment:
        self._made += 1
        member = f"{pilot}.{self._incarnation}.{self._made}"
        return Assignment(member=member, training=spec.name, name=spec.name, folder=spec.folder, argv=spec.argv)

    def done(self, message: PilotDone) -> bool:
        """Its training process has ended; whether it was this daemon that assigned it."""
        post = self._posts.get(message.pilot)
        if post is None or post.assignment is None:
            return False
        known = post.assignment.member == message.member
        post.assignment = None
        return known

    def knows(self, pilot: str) -> bool:
        """Whether it has said hello."""
        return pilot in self._posts

    def node(self, pilot: str) -> str | None:
        """Where it said that it is."""
        return self._posts[pilot].node if pilot in self._posts else None

    def gone(self, pilot: str) -> None:
        """The pilot has ended."""
        self._posts.pop(pilot, None)

    def nodes(self) -> dict[str, str]:
        """Every pilot that has said hello and has not ended, and its node."""
        return {pilot: post.node for pilot, post in self._posts.items()}

    def unjoined(self, training: str, members: Container[str]) -> list[str]:
        """Pilots that have been told to run ``training`` and whose process is none of ``members`` yet."""
        told = ((pilot, post.assignment) for pilot, post in self._posts.items() if post.assignment is not None)
        return [pilot for pilot, assignment in told if assignment.training == training and assignment.member not in members]

    def starting(self, training: str) -> frozenset[str]:
        """Nodes whose pilots have been told to run ``training``."""
        return frozenset(post.node for post in self._posts.values() if post.assignment is not None and post.assignment.training == training)
