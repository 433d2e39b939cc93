"""plan."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import msgspec

from commensald.allocate.provision.pace import Goal
from commensald.allocate.provision.profile_file import Measured, load_profile
from commensald.allocate.provision.search import NoMix, OutOfReach, Plan, plans
from commensald.cli.lazy import Failed
from commensald.cli.tables import duration, json_option, number, print_json, print_table
from commensald.strict import InputError

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What ``--json`` prints."""

    goal: Goal
    unit: str
    plan: Plan
    alternatives: tuple[Plan, ...]
    notes: tuple[str, ...]


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--loss", type=float, help="The loss to reach.")
@click.option(
    "--deadline", callback=lambda _context, _option, value: _seconds(value), help="Within so long from now: 2600 (seconds), 45m, 12h, 2d."
)
@click.option("--budget", type=float, help="For no more than this, in the unit of the file's charges.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw all mixes by time and cost to this file (PNG).")
@json_option
def plan(file: Path, loss: float | None, deadline: float | None, budget: float | None, plot: Path | None, as_json: bool) -> None:
    """Say which mix of nodes brings a training to a loss in time, and what it costs.

    FILE holds a training's profile and its nodes' charges (see config/examples). Options replace the goal that stands there.
    """
    measured = load_profile(file)
    goal = _goal(measured, file, loss, deadline, budget)
    try:
        first, *others = plans(measured.profile, goal)
    except OutOfReach as error:
        raise InputError(f"{file}: {error}") from error
    except NoMix as error:
        raise Failed(str(error)) from error
    if plot is not None:
        _plot(plot, measured, goal, (first, *others))
    report = Report(goal=goal, unit=measured.unit, plan=first, alternatives=tuple(others), notes=tuple(_notes(measured, goal, first)))
    if as_json:
        print_json(report)
    else:
        _print(report)


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    if match is None:
        raise click.BadParameter(f"'{text}' is not a time such as 2600, 45m or 12h")
    return float(match[1]) * _UNITS[match[2]]


def _goal(measured: Measured, file: Path, loss: float | None, deadline: float | None, budget: float | None) -> Goal:
    there = measured.goal
    wanted = there.loss if loss is None else loss
    if wanted is None:
        raise InputError(f"{file}: no loss to reach; give --loss or [goal] loss")
    goal = Goal(
        loss=wanted,
        deadline_seconds=there.deadline_seconds if deadline is None else deadline,
        budget=there.budget if budget is None else budget,
    )
    if not math.isfinite(wanted):
        raise InputError(f"--loss: expected a finite number, got {wanted}")
    for key, given, value in (("deadline", deadline, goal.deadline_seconds), ("budget", budget, goal.budget)):
        if value is not None and not value > 0:
            where = f"--{key}" if given is not None else f"{file}: [goal] {key}"
            raise InputError(f"{where}: expected more than 0, got {value:g}")
    return goal


def _notes(measured: Measured, goal: Goal, chosen: Plan) -> Iterator[str]:
    if measured.observed is None:
        yield "the loss model was given, not fitted: its error is not known"
        return
    lowest, batches = float(measured.observed.loss.min()), measured.observed.pace.batch
    if goal.loss < lowest:
        yield f"no loss below {lowest:.4g} was seen: {goal.loss:g} is extrapolated"
    if not 0.99 * batches.min() <= chosen.batch <= 1.01 * batches.max():
        yield f"a batch of {chosen.batch:.0f} is extrapolated: those seen were {batches.min():.0f} to {batches.max():.0f}"


def _plot(path: Path, measured: Measured, goal: Goal, found: Sequence[Plan]) -> None:
    try:
        from commensald.cli.plan_picture import draw
    except ModuleNotFoundError as error:
        raise Failed(f"--plot: {error.name} is not installed (pip install 'commensal[plots]')") from error
    try:
        draw(path, measured.profile, goal, found, measured.unit)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error


def _print(report: Report) -> None:
    goal = report.goal
    limits = [f"loss {goal.loss:g}"]
    limits += [] if goal.deadline_seconds is None else [f"within {duration(goal.deadline_seconds)}"]
    limits += [] if goal.budget is None else [f"for at most {goal.budget:g} {report.unit}"]
    click.echo(", ".join(limits))
    columns = ("PLAN", "MIX", "NODES", "STEPS", "TIME", "90 % BETWEEN", f"COST ({report.unit})", "RISK")
    print_table(columns, [_row(each, goal) for each in (report.plan, *report.alternatives)])
    for note in report.notes:
        click.echo(f"note: {note}")


def _row(each: Plan, goal: Goal) -> tuple[str, ...]:
    mix = " + ".join(f"{count} {name}" for name, count in each.mix.items())
    between = "-" if each.seconds_low is None else f"{duration(each.seconds_low)} .. {duration(each.seconds_high, 'never')}"
    risk = "-" if each.risk is None else f"{each.risk:.0%}"
    late = ", late" if goal.deadline_seconds is not None and each.seconds > goal.deadline_seconds else ""
    dear = ", over budget" if goal.budget is not None and each.cost > goal.budget else ""
    return f"{each.why}{late}{dear}", mix, str(each.nodes), number(each.steps), duration(each.seconds), between, number(each.cost, 2), risk
