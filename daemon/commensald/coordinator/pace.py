"""How fast one training steps and what its changes of members cost, as its lead reports them: what curves are learnt from."""

from __future__ import annotations

from collections import deque
from statistics import median

import msgspec

from commensal.messages import SettledStep
from commensald.allocate.observations import Closed, Observation, Rescale, stalls
from commensald.coordinator.losses import Losses, LossPoint

KEPT = 32
"""Durations kept of each (nodes, batch), and rescales: the newest, since a training's speed drifts."""
FORGET_SECONDS = 900.0
"""What has not been seen for so long is forgotten, so that a size which was slow once is tried again."""
SETTLED_PACE = 5
"""So many steps of a ring show how long one takes, and with it what its beginning cost."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept over the daemon's life: the median of each (nodes, batch), rescales, the noise scale, nodes times seconds of stepping,
    the course of the loss; and what is shown of a training that is not coordinated now."""

    steps: tuple[Observation, ...] = ()
    rescales: tuple[Rescale, ...] = ()
    noise_scale: float | None = None
    node_seconds: float = 0.0
    losses: tuple[LossPoint, ...] = ()
    epoch: int = 0
    loss: float | None = None
    checkpoint: int | None = None
    steps_lost: int = 0


class Pace:
    """Takes settled steps in order, and the warm-ups of newcomers."""

    def __init__(self, seen: Seen) -> None:
        self._durations = {(each.nodes, each.batch): deque([each.step_seconds], KEPT) for each in seen.steps}
        self._at: dict[tuple[int, int], float] = {}
        """When each was seen last, in this life."""
        self._rescales = deque(seen.rescales, KEPT)
        self._ring: list[Closed] = []
        """The last close of the ring before, and the first ones of this."""
        self._last: Closed | None = None
        self.noise_scale = seen.noise_scale
        self.node_seconds = seen.node_seconds
        self.losses = Losses(seen.losses)

    def settled(self, step: SettledStep, at: float) -> None:
        """A step that closed at ``at``, in seconds of any clock."""
        closed = Closed(at=at, ring=str(step.generation), nodes=step.nodes, batch=len(step.samples))
        before, self._last = self._last, closed
        self.losses.add(LossPoint(step.step, step.loss, len(step.samples)))
        self.noise_scale = step.noise_scale if step.noise_scale is not None else self.noise_scale
        if before is None or before.ring != closed.ring:
            self._ring = [*([before] if before is not None else []), closed]
            return
        self.node_seconds += closed.nodes * max(at - before.at, 0.0)
        if len(step.samples) == step.batch and at > before.at:
            self._took((closed.nodes, closed.batch), at - before.at, at)
        self._stalled(closed)

    def _took(self, size: tuple[int, int], seconds: float, at: float) -> None:
        self._durations.setdefault(size, deque(maxlen=KEPT)).append(seconds)
        self._at[size] = at
        for old in [each for each in self._durations if at - self._at.setdefault(each, at) > FORGET_SECONDS]:
            del self._durations[old], self._at[old]

    def _stalled(self, closed: Closed) -> None:
        if len(self._ring) <= SETTLED_PACE + 1:
            self._ring.append(closed)
            if len(self._ring) == SETTLED_PACE + 2:
                self._rescales.extend(Rescale(stall_seconds=seconds) for seconds in stalls(self._ring))

    def warmed(self, seconds: float) -> None:
        """A newcomer closed its first step ``seconds`` after its node was given to the training."""
        self._rescales.append(Rescale(warmup_seconds=(seconds,)))

    def seen(self) -> Seen:
        """All that is known now."""
        return Seen(
            steps=tuple(
                Observation(nodes=nodes, batch=batch, step_seconds=median(taken))
                for (nodes, batch), taken in sorted(self._durations.items())
            ),
            rescales=tuple(self._rescales),
            noise_scale=self.noise_scale,
            node_seconds=self.node_seconds,
            losses=tuple(self.losses.points),
        )
