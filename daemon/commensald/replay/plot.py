"""A replay as a picture: the pool and what was used of it, the rate, the losses. Needs matplotlib (extra ``plots``)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from commensald.replay.measure import Answer
from commensald.replay.traces import Trace

IDLE, USED, RATE, RESCALE, PREEMPT, INK = "#d8d4c8", "#2f6db3", "#2a8f6d", "#e07b28", "#b33f3f", "#6b6f76"


def draw(found: Answer, trace: Trace, title: str, path: Path) -> None:
    """Write the picture to ``path`` (PNG). Raises OSError when it cannot be written."""
    figure = Figure(figsize=(11, 7.5), layout="constrained")
    FigureCanvasAgg(figure)
    pool, rate, losses = figure.subplots(3, 1, sharex=True, height_ratios=(3, 2, 2))
    points = found.outcome.points
    hours = np.array([*(each.at for each in points), trace.end]) / 3600.0 - trace.start / 3600.0
    share = found.against.dedicated / trace.seconds
    pool.stairs([each.pool for each in points], hours, fill=True, color=IDLE, label="idle")
    pool.stairs([each.used for each in points], hours, fill=True, color=USED, label="training")
    pool.axhline(trace.equivalent_nodes, color=INK, linewidth=0.8, linestyle="--", label=f"mean, {trace.equivalent_nodes:.1f}")
    rate.stairs([each.rate / share for each in points], hours, fill=True, color=RATE, label="of the dedicated nodes' rate")
    rate.axhline(1.0, color=INK, linewidth=0.8, linestyle="--")
    percent = 100 / found.against.dedicated
    losses.stairs([each.rescale_lost * percent for each in points], hours, color=RESCALE, label="by rescaling", baseline=None)
    losses.stairs([each.preempt_lost * percent for each in points], hours, color=PREEMPT, label="by preemption", baseline=None)
    _label(pool, "nodes", "upper right")
    _label(rate, "rate", "upper right")
    _label(losses, "lost so far, %", "upper left")
    losses.set_xlim(0, hours[-1])
    losses.set_xlabel("hours")
    pool.set_title(title, fontsize=10, loc="left")
    figure.savefig(path, dpi=110, format="png")


def _label(axes: Axes, name: str, legend: Literal["upper left", "upper right"]) -> None:
    axes.set_ylabel(name)
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc=legend)
