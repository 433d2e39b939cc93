"""The members of one training as the coordinator knows them."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from commensal.messages import Beat, Generation, Hello, Leaving


@dataclass
class Entry:
    """One member: what it said last, and what is wanted of it."""

    hello: Hello
    seen: float
    warm: bool = False
    offers: int = 0
    generation: Generation | None = None
    """The ring it steps in, by its own word."""
    closed: int | None = None
    entered: bool = False
    moved: int = 0
    speed: float | None = None
    spares: int = 0
    trouble: str = ""
    out: bool = False
    """It is to leave: the daemon or a signal asked."""
    leaving: Leaving | None = None
    stay: int | None = None
    """The first step that it closed in its present stay."""
    closed_at: float = 0.0

    @property
    def state(self) -> str:
        """The word for ``status``."""
        if self.out:
            return "leaving"
        if self.generation is not None:
            return "in ring"
        if self.trouble:
            return "no sidecar"
        return "warm" if self.warm else "arriving"

    def beat(self, beat: Beat, now: float) -> None:
        """Note a heartbeat."""
        self.generation, self.closed, self.entered, self.moved = beat.generation, beat.closed, beat.entered, beat.moved
        self.speed = beat.speed if beat.speed is not None else self.speed
        self.spares, self.trouble = beat.spares, beat.trouble
        if beat.closed_ago is not None:
            self.closed_at = now - beat.closed_ago


class Ring(msgspec.Struct):
    """The generation in use."""

    generation: Generation
    members: tuple[str, ...]
    batch: int | None = None
    """Of each step; ``None``: the training's smallest."""
    progress: int | None = None
    """Steps closed and pieces of state moved, over all members."""
    progressed: float = 0.0
    """When that changed, or when somebody was last busy with something else than waiting."""
    told: set[str] = msgspec.field(default_factory=set)
    """Members that have been asked to stop."""
    closed: dict[str, int] = msgspec.field(default_factory=dict)
    """What each has acknowledged as closed."""


class Proposal(msgspec.Struct):
    """A generation that is being formed; ``committed`` once it cannot be withdrawn."""

    generation: Generation
    members: tuple[str, ...]
    batch: int | None
    deadline: float
    formed: dict[str, int]
    committed: bool = False


class Gathering(msgspec.Struct):
    """Answers that are waited for: Halted after Halt, Withdrawn after a probe."""

    generation: Generation
    waiting: set[str]
    deadline: float
    unreachable: dict[str, tuple[str, ...]]
