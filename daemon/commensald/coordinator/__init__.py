"""The coordinator: who is in which ring, decided in one place.

``membership.py`` is the pure state machine of one training, ``server.py`` its sockets.
"""

from __future__ import annotations

import msgspec

from commensal.messages import Generation


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Time limits of the control plane, in seconds (section ``[ring]`` of the configuration)."""

    beat_seconds: float = 0.25
    lost_after: float = 2.0
    form_timeout: float = 5.0
    watchdog_seconds: float = 2.0
    exit_budget: float = 0.5
    orphan_limit: float = 300.0
    settle_seconds: float = 0.1
    """How long a change of members waits for others to come with it."""
    quarantine_failures: int = 3
    """A member that fails to form this many times in a row is kept out for ``quarantine_seconds``."""
    quarantine_seconds: float = 60.0


class GenerationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the ledger keeps of a training's newest generation, written before it is announced.

    ``members`` are in the order of ranks; ``closed`` and ``source`` are set once members start from the state after ``closed`` steps.
    """

    training: str
    generation: Generation
    members: tuple[str, ...]
    closed: int | None = None
    source: str | None = None


class MemberStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A member as ``commensal status`` shows it."""

    member: str
    pilot: str
    node: str
    state: str
    closed: int | None = None
    speed: float | None = None


class TrainingStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the coordinator knows of one training; ``settled`` counts settled steps, ``starting`` nodes whose members are yet to come."""

    training: str
    generation: Generation | None
    members: tuple[MemberStatus, ...]
    starting: int = 0
    settled: int = 0
    samples: int = 0
    epoch: int = 0
    loss: float | None = None
    batch: int | None = None
    """Global batch of the last settled step."""
    recent_loss: float | None = None
    """Mean over the last steps (coordinator/losses.py)."""
    node_hours: float = 0.0
    noise_scale: float | None = None
    """Of the gradient, in samples (commensal/noise.py)."""
    measured: dict[str, float] = {}
    checkpoint: int | None = None
    checkpoint_error: str | None = None
    steps_lost: int = 0
    failure: str | None = None
    """The last lines of a script that raised."""
    finished: bool = False
