"""The live view on a terminal: each node as a strip of coloured cells through time, the rings, the counters."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from commensald.demo.board import Board, Counters, Use

BLOCKS = " ▁▂▃▄▅▆▇█"
COLOURS = ("dodger_blue2", "dark_orange", "green3", "orchid", "gold3", "red3")
CELLS = {
    Use.IDLE: ("·", "grey50"),
    Use.PILOT: ("░", "pale_green3"),
    Use.RESERVED: ("▒", "medium_purple"),
    Use.PRIMARY: ("█", "grey42"),
    Use.DOWN: ("x", "red"),
}

Cell = tuple[Use, str | None]


class Strip:
    """What each node was used for, sampled ``columns`` times over the ``seconds`` of the demo."""

    def __init__(self, seconds: float, columns: int) -> None:
        self._seconds_per_column = seconds / columns
        self.columns = columns
        self.cells: dict[str, list[Cell]] = {}

    def sample(self, board: Board, elapsed: float, now: float) -> None:
        """Fill the columns up to this moment with what is true now."""
        wanted = min(self.columns, int(elapsed / self._seconds_per_column) + 1)
        for node in board.nodes:
            row = self.cells.setdefault(node, [])
            row.extend([board.use(node, now)] * (wanted - len(row)))
            row[-1:] = [board.use(node, now)]


def render(board: Board, strip: Strip, elapsed: float, seconds: float) -> RenderableType:
    """The whole view."""
    names = list(board.rings)
    title = f"commensal demo · {min(elapsed, seconds):.0f} of {seconds:.0f} s"
    return Panel(
        Group(_strip(strip, names), _legend(names), Text(), _rings(board), Text(), _counters(board.counters)),
        title=title,
        expand=False,
    )


def sparkline(values: Sequence[float], width: int) -> str:
    """The course of ``values`` in at most ``width`` block characters, each the mean of its stretch."""
    if not values:
        return ""
    size = max(1, -(-len(values) // width))
    means = [sum(part) / len(part) for part in (values[i : i + size] for i in range(0, len(values), size))]
    low, high = min(means), max(means)
    scale = (len(BLOCKS) - 2) / (high - low) if high > low else 0.0
    return "".join(BLOCKS[1 + round((mean - low) * scale)] for mean in means)


def _strip(strip: Strip, names: Sequence[str]) -> Table:
    table = Table.grid(padding=(0, 1))
    for node, cells in strip.cells.items():
        row = Text()
        for cell in cells:
            row.append(*_cell(cell, names))
        row.append(" " * (strip.columns - len(cells)))
        table.add_row(node, row)
    return table


def _cell(cell: Cell, names: Sequence[str]) -> tuple[str, str]:
    use, training = cell
    if training is None:
        return CELLS[use]
    index = names.index(training) if training in names else len(names)
    return chr(ord("A") + index), f"bold white on {COLOURS[index % len(COLOURS)]}"


def _legend(names: Sequence[str]) -> Text:
    legend = Text("     ")
    for use, word in ((Use.PRIMARY, "primary job"), (Use.IDLE, "idle"), (Use.PILOT, "pilot starting"), (Use.RESERVED, "reserved")):
        legend.append(*CELLS[use]).append(f" {word}   ")
    for name in names:
        legend.append(*_cell((Use.RING, name), names)).append(f" {name}   ")
    return legend


def _rings(board: Board) -> Table:
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for title in ("training", "generation", "members", "step", "epoch", "samples", "loss", "", "accuracy"):
        table.add_column(title, justify="left" if title in ("training", "") else "right")
    for name, ring in board.rings.items():
        loss = f"{ring.losses[-1]:.4f}" if ring.losses else "-"
        accuracy = "-" if ring.accuracy is None else f"{ring.accuracy:.3f}"
        figures = (ring.generation, len(board.stepping(name)), ring.steps, ring.epoch, f"{ring.samples:,}", loss)
        table.add_row(name, *map(str, figures), sparkline(list(ring.losses), 20), accuracy)
    return table


def _counters(counters: Counters) -> Text:
    parts = (
        f"primary jobs {counters.primaries}",
        f"pilots {counters.pilots}",
        f"preempted {counters.preemptions}",
        f"killed {counters.kills}",
        f"generations {counters.generations}",
        f"checkpoints {counters.checkpoints}",
        f"steps lost {counters.steps_lost}",
    )
    return Text(" " + " · ".join(parts))
