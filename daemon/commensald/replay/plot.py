"""A replay as a picture: the pool and what was used of it, the rate, the losses. Needs matplotlib (extra ``plots``)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from commensald.replay.measure import Answer
from commensald.replay.traces import Trace

IDLE, USED, RATE, RESCALE, PREEMPT, INK = "#d8d4c8", "#2f6db3", "#2a8f6d", "#e07b28", "#b33f3f", "#6b6f76"


def draw(found: Answer, trace: Trace, title: str, path: Path) -> None:
    """Write the picture to ``path``. Raises OSError when it cannot be written, ValueError for an unknown kind of picture."""
    figure = Figure(figsize=(11, 7.5), layout="constrained")
    FigureCanvasAgg(figure)
    pool, rate, losses = figure.subplots(3, 1, sharex=True, height_ratios=(3, 2, 2))
    points = found.outcome.points
    hours = np.array([*(each.at for each in points), trace.end]) / 3600.0 - trace.start / 3600.0
    share = found.against.dedicated / trace.seconds
    _steps(pool, hours, [each.pool for each in points], IDLE, "idle")
    _steps(pool, hours, [each.used for each in points], USED, "training")
    pool.axhline(trace.equivalent_nodes, color=INK, linewidth=0.8, linestyle="--", label=f"mean, {trace.equivalent_nodes:.1f}")
    _steps(rate, hours, [each.rate / share for each in points], RATE, "work, relative to the dedicated nodes'")
    rate.axhline(1.0, color=INK, linewidth=0.8, linestyle="--")
    losses.plot(hours[:-1], [100 * each.rescale_lost / found.against.dedicated for each in points], color=RESCALE, label="rescaling")
    losses.plot(hours[:-1], [100 * each.preempt_lost / found.against.dedicated for each in points], color=PREEMPT, label="preemption")
    _label(pool, "nodes")
    _label(rate, "rate")
    _label(losses, "lost so far, %")
    losses.set_xlim(0, hours[-1])
    losses.set_xlabel("hours")
    pool.set_title(title, fontsize=10, loc="left")
    figure.savefig(path, dpi=110)


def _steps(axes: Axes, hours: np.ndarray, values: list[float] | list[int], colour: str, label: str) -> None:
    axes.stairs(values, hours, fill=True, color=colour, label=label)


def _label(axes: Axes, name: str) -> None:
    axes.set_ylabel(name)
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="upper right")
