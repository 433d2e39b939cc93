"""The timeline as a picture: nodes by time, the size of each ring, and every preemption and kill. Needs matplotlib (extra ``plots``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from commensald.demo.intervals import Spans
from commensald.demo.occupancy import Occupancy, Stay, occupancy, stays
from commensald.demo.record import Assigned, Entry, Killed, Signalled, clock, read
from commensald.demo.summary import kills, preemptions, training_names
from commensald.events import Event

PRIMARY = "#9aa0a6"
IDLE = "#f3eee3"
HARVESTED = "#c9dcc8"
RESERVED = "#d9c7e8"
DOWN = "#33363b"
RINGS = ("#2f6db3", "#e07b28", "#2a8f6d", "#a34d8e", "#7a6a2f", "#b33f3f")
INK = "#22252a"
PREEMPTED, KILLED = "v", "X"


def draw(events: Iterable[Event], path: Path) -> None:
    """Write the timeline of a log to ``path`` (PNG). Raises OSError when it cannot be written."""
    entries = read(events)
    names = training_names(entries)
    nodes = occupancy(entries)
    figure = Figure(figsize=(11, 1.9 + 0.32 * len(nodes) + 1.5), layout="constrained")
    FigureCanvasAgg(figure)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(0.32 * len(nodes) + 0.6, 1.5))
    start, stop = clock(entries)
    _draw_nodes(top, nodes, names, start)
    _draw_interruptions(top, entries, nodes, start, stop)
    _draw_rings(bottom, entries, names, start, stop)
    bottom.set_xlim(0, stop - start)
    bottom.set_xlabel("seconds since the demo's clock started")
    figure.legend(handles=_legend(names), loc="outside upper center", ncols=5 + len(names), frameon=False, fontsize=9)
    figure.savefig(path, dpi=110, format="png")


def _draw_nodes(axes: Axes, nodes: Sequence[Occupancy], names: Sequence[str], start: float) -> None:
    for row, node in enumerate(nodes):
        layers = [(node.down, DOWN), (node.reserved, RESERVED), (node.primary, PRIMARY), (node.idle, IDLE), (node.harvested, HARVESTED)]
        layers += [(node.in_ring.get(name, ()), _colour(index)) for index, name in enumerate(names)]
        for spans, colour in layers:
            axes.broken_barh(_bars(spans, start), (row - 0.42, 0.84), facecolors=colour, linewidth=0)
    axes.set_yticks(range(len(nodes)), [node.node for node in nodes], fontsize=9)
    axes.set_ylim(len(nodes) - 0.4, -0.6)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)


def _draw_interruptions(axes: Axes, entries: Sequence[Entry], nodes: Sequence[Occupancy], start: float, stop: float) -> None:
    rows = {node.node: row for row, node in enumerate(nodes)}
    held = {entry.job: entry.nodes for entry in entries if isinstance(entry, Assigned)}
    inside = [entry for entry in entries if entry.at <= stop]
    marked: list[tuple[Sequence[Signalled | Killed], str]] = [(preemptions(inside), PREEMPTED), (kills(inside), KILLED)]
    for interruptions, marker in marked:
        points = [(entry.at - start, rows[node]) for entry in interruptions for node in held.get(entry.job, ()) if node in rows]
        across, down = [at for at, _ in points], [row for _, row in points]
        axes.scatter(across, down, marker=marker, s=36, color=INK, edgecolors="white", linewidths=0.6, zorder=3)


def _draw_rings(axes: Axes, entries: Sequence[Entry], names: Sequence[str], start: float, stop: float) -> None:
    for index, name in enumerate(names):
        changes = ring_sizes(stays(entries), name)
        times = [0.0, *(at - start for at, _ in changes if at < stop), stop - start]
        sizes = [0, *(size for at, size in changes if at < stop)]
        axes.step(times, [*sizes, sizes[-1]], where="post", color=_colour(index), linewidth=1.8)
    axes.set_ylabel("members")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.7)


def ring_sizes(members: Sequence[Stay], training: str) -> list[tuple[float, int]]:
    """(instant, members that step from then on) at each change of a training's ring."""
    edges = [edge for stay in members if stay.training == training for edge in ((stay.begin, 1), (stay.end, -1))]
    at = sorted(edges)
    return list(zip((instant for instant, _ in at), accumulate(change for _, change in at), strict=True))


def _legend(names: Sequence[str]) -> list[Patch | Line2D]:
    states = [(PRIMARY, "primary job"), (IDLE, "idle"), (HARVESTED, "pilot, not in a ring")]
    states += [(_colour(index), f"in ring: {name}") for index, name in enumerate(names)]
    patches = [Patch(facecolor=colour, edgecolor="#bbbbbb", linewidth=0.5, label=label) for colour, label in states]
    marks = [(PREEMPTED, "preempted"), (KILLED, "killed")]
    return [*patches, *(Line2D([], [], marker=marker, color=INK, linestyle="none", label=label) for marker, label in marks)]


def _bars(spans: Spans, start: float) -> list[tuple[float, float]]:
    return [(begin - start, end - begin) for begin, end in spans]


def _colour(index: int) -> str:
    return RINGS[index % len(RINGS)]
