"""All mixes by time and cost, the goal's limits, and the plans. Needs matplotlib (extra ``plots``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from commensald.allocate.provision.pace import Goal
from commensald.allocate.provision.search import Plan, Profile, all_mixes
from commensald.allocate.provision.spotdnn import algorithm_1

MIX, LOOKED, LIMIT, INK = "#c9ccd1", "#2f6db3", "#b33f3f", "#22252a"
COLOURS = (INK, "#e07b28", "#2a8f6d", "#a34d8e", "#7a6a2f", "#b33f3f")


def draw(path: Path, profile: Profile, goal: Goal, plans: Sequence[Plan], unit: str) -> None:
    """Write the picture to ``path`` (PNG). Raises OSError when it cannot be written."""
    figure = Figure(figsize=(9, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    everything, looked = all_mixes(profile, goal), algorithm_1(profile.performance, profile.loss, Goal(loss=goal.loss))
    for priced, colour, size, label in ((everything, MIX, 5, "all mixes"), (looked, LOOKED, 9, "windows of Algorithm 1")):
        if priced is not None:
            axes.scatter(priced.seconds / 60, priced.cost, s=size, color=colour, linewidths=0, label=label, rasterized=True)
    _limits(axes, goal)
    for each, colour in zip(plans, COLOURS, strict=False):
        words = f"{each.why}: " + " + ".join(f"{count} {name}" for name, count in each.mix.items())
        axes.scatter([each.seconds / 60], [each.cost], s=90, facecolors="none", edgecolors=colour, linewidths=2, label=words)
    cheap = max(each.seconds for each in plans if np.isfinite(each.seconds))
    axes.set_xlim(0, 1.05 * cheap / 60)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"minutes to loss {goal.loss:g}")
    axes.set_ylabel(unit)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="upper right")
    figure.savefig(path, dpi=110, format="png")


def _limits(axes: Axes, goal: Goal) -> None:
    if goal.deadline_seconds is not None:
        axes.axvline(goal.deadline_seconds / 60, color=LIMIT, linewidth=1, linestyle="--", label="deadline")
    if goal.budget is not None:
        axes.axhline(goal.budget, color=LIMIT, linewidth=1, linestyle=":", label="budget")
