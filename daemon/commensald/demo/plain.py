"""Plain lines for where there is no terminal: one for each thing worth knowing, and the state of the rings every ten seconds."""

from __future__ import annotations

from collections.abc import Iterator

from commensald.demo.board import Board
from commensald.demo.record import Checkpoint, Entry, Failed, GenerationMade, Killed, Signalled, Started, StepsLost


def line(entry: Entry) -> str | None:
    """What to say of an event, if anything."""
    match entry:
        case Started(pilot=None):
            return f"primary job {entry.job} starts on {', '.join(entry.nodes)}"
        case Signalled(pilot=str(pilot), reason="preempt"):
            return f"pilot {short(pilot)} preempted: SIGTERM"
        case Killed(pilot=str(pilot), reason="injected"):
            return f"pilot {short(pilot)} killed without notice"
        case Killed(pilot=str(pilot)):
            return f"pilot {short(pilot)} overstayed its deadline: SIGKILL"
        case GenerationMade():
            nodes = ", ".join(seat.node for seat in entry.members)
            return f"{entry.training}: generation {entry.generation}, {len(entry.members)} members ({nodes}) {entry.reason}".rstrip()
        case Checkpoint():
            return f"{entry.training}: step {entry.step} saved"
        case StepsLost():
            return f"{entry.training}: steps {entry.first} to {entry.last} lost"
        case Failed():
            return f"{entry.training}: failed: {(entry.tail.strip().splitlines() or ['?'])[-1]}"
        case _:
            return None


def status(board: Board) -> Iterator[str]:
    """One line a training."""
    for name, ring in board.rings.items():
        loss = f"{ring.losses[-1]:.4f}" if ring.losses else "-"
        accuracy = "-" if ring.accuracy is None else f"{ring.accuracy:.3f}"
        yield f"{name}: {len(board.stepping(name))} members, step {ring.steps}, {ring.samples} samples, loss {loss}, accuracy {accuracy}"


def short(pilot: str) -> str:
    """The first eight characters of a pilot's uuid."""
    return pilot[:8]
