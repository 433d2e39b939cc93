"""The ring as the training loop sees it, and the rooms behind it.

A training loop needs four things: to know its place in the step (:meth:`Ring.begin`), to add up words with the other members
(:meth:`Ring.reduce`, :meth:`Ring.wait`), and to say that a step is closed (:meth:`Ring.closed`). Whether it is alone or one of many is the
ring's affair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from commensal.messages import Generation, SettledStep

if TYPE_CHECKING:
    import torch

    from commensal.checkpoint import Snapshot


class Lost(Exception):
    """The step in flight cannot be closed: drop its sums and begin again."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where this member stands in one step. ``speeds`` are by rank; ``batch`` overrides the training's smallest batch."""

    rank: int
    size: int
    speeds: tuple[float, ...]
    generation: Generation | None = None
    batch: int | None = None


class Replica(Protocol):
    """The state that membership moves about: model, optimizer, scheduler, scaler, position in the data."""

    @property
    def closed(self) -> int:
        """Steps in this state."""

    @property
    def signature(self) -> str:
        """Equal for two processes exactly when they can be members of one ring."""

    def export(self) -> tuple[bytes, Sequence[torch.Tensor]]:
        """A JSON header that fully describes the tensors, and the tensors (detached, contiguous, on the CPU)."""

    def blank(self, header: bytes) -> Sequence[torch.Tensor]:
        """Empty tensors shaped as the header says, to be filled and given to :meth:`load`."""

    def load(self, header: bytes, tensors: Sequence[torch.Tensor]) -> None:
        """Become that state."""

    def resume(self, closed: int) -> None:
        """Become the state after ``closed`` steps from disk (or the fresh one for 0)."""


class Ring(Protocol):
    """What carries a training: alone, or an elastic ring of members."""

    def memory(self, words: int) -> torch.Tensor:
        """A flat float32 tensor of ``words`` words, zeroed: where gradients, statistics and control words live. Called once."""

    def begin(self, replica: Replica) -> Place | None:
        """Wait until this member may run the step after ``replica.closed``; the replica may be replaced meanwhile.

        ``None``: all members have stopped after a step that is settled and saved; say what is to be said of it, then :meth:`depart`.
        """

    def reduce(self, low: int, high: int) -> None:
        """Start adding up words [low, high) over all members; returns at once. The order of calls is the same on all members."""

    def words(self) -> tuple[float, float, float]:
        """This member's control words for the step: holds the next generation, sees a stop, sees a save."""

    def wait(self) -> None:
        """Wait until everything started has arrived: all steps before this one are settled. Raises Lost."""

    def claim(self) -> None:
        """Close the step: from here until :meth:`closed` nothing interrupts. Raises Lost when the ring was halted since :meth:`wait`."""

    def closed(self, replica: Replica, hold: float, stop: float, save: float) -> bool:
        """The step is closed and applied; the summed control words decide what follows. True: snapshot the replica now for a save."""

    def save(self, taken: Snapshot) -> None:
        """Save this snapshot in the background: what :meth:`closed` asked for."""

    def worked(self, samples: int, seconds: float) -> None:
        """This member has computed ``samples`` of the step in ``seconds``, waiting for others not counted."""

    def settled(self, report: SettledStep) -> None:
        """That step is settled; every member that closed it says so, in order."""

    def measured(self, step: int, values: dict[str, float]) -> None:
        """Figures measured on the settled parameters after ``step`` steps."""

    def settle(self, replica: Replica) -> None:
        """Wait until the step that the replica has closed is settled."""

    def depart(self) -> None:
        """End this process: its part in the training has ended before the training has."""

    def abandon(self) -> None:
        """The script has left its loop early: this member takes part no more, the process goes on."""

    def finish(self, replica: Replica) -> None:
        """The last step has been closed: wait until it is settled, end the membership."""
