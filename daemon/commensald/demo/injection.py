"""Injected kills: when, and whom."""

from __future__ import annotations

import msgspec

from commensald.demo.board import Board


class Kills(msgspec.Struct, frozen=True, kw_only=True):
    """``due``: seconds of the demo's clock at which a kill is wanted; one at a time, the first not yet carried out counts.

    A kill waits for a ring of at least ``members``; from ``patience`` seconds after its time on, two are enough.
    """

    due: tuple[float, ...]
    patience: float
    members: int = 3

    def victim(self, board: Board, elapsed: float) -> str | None:
        """The pilot to kill now: a member of the largest ring, each time another rank of it."""
        done = board.counters.kills
        if done >= len(self.due) or elapsed < self.due[done]:
            return None
        least = self.members if elapsed < self.due[done] + self.patience else 2
        largest = max((board.stepping(name) for name in board.rings), key=len)
        pilots = [seat.pilot for seat in largest if seat.pilot in board.jobs]
        return pilots[done % len(pilots)] if len(pilots) >= least else None
