"""What every kind of replay takes on its command line."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from commensald.cli.tables import json_option
from commensald.decision import AllocatorName, Policy
from commensald.replay import sets
from commensald.replay.measure import Question
from commensald.replay.simulate import Rules
from commensald.replay.traces import Span
from commensald.replay.workload import Costs
from commensald.strict import InputError

FILE = click.Path(path_type=Path, dir_okay=False)


class Number(click.FloatRange):
    """A finite one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401 - click's own
        """Raises BadParameter."""
        number: float = super().convert(value, param, ctx)
        return number if math.isfinite(number) else self.fail(f"{value} is not a finite number", param, ctx)


SECONDS, COUNT = Number(min=0), click.IntRange(min=1)

SHARED = (
    click.option("--from", "begin", type=Number(), metavar="UNIX_TIME", help="Where to begin; else at the log's beginning."),
    click.option("--hours", type=Number(min=0, min_open=True), help="How much to replay; else to the log's end."),
    click.option(
        "--workload", default="hpo", show_default=True, metavar="hpo|mix|FILE", help="Trainers: a set of --tables, or a TOML file."
    ),
    click.option("--tables", type=FILE, help="The file with the sets (scaling_tables.json)."),
    click.option(
        "--allocator", type=click.Choice(get_args(AllocatorName)), default="exact", show_default=True, help="Who shares the nodes."
    ),
    click.option("--look-ahead", type=SECONDS, default=120.0, show_default=True, help="Seconds in which a rescale must pay for itself."),
    click.option("--trainers", type=COUNT, default=10, show_default=True, help="Trained at once, first come, first served."),
    click.option("--rescale-up", type=SECONDS, help="Seconds without work when a trainer grows; else the workload's."),
    click.option("--rescale-down", type=SECONDS, help="Likewise when it shrinks or loses nodes."),
    click.option("--warm-up", type=SECONDS, help="Seconds until a new node works; else the workload's."),
    click.option("--cold-start", type=click.Choice(("free", "charged")), default="charged", show_default=True, help="Starts from no node."),
    click.option(
        "--finish",
        type=click.Choice(("event", "legacy")),
        default="event",
        show_default=True,
        help="legacy: a trainer that is done keeps its nodes until the pool changes, as in the authors' replays.",
    ),
    click.option(
        "--unit", type=click.Choice(("samples", "speedup")), default="samples", show_default=True, help="What work is counted in."
    ),
    click.option("--measured-ring", is_flag=True, help="Replay at the costs measured for our own ring, too."),
    click.option("--plot", type=FILE, help="Write a picture (PNG)."),
    json_option,
)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """SHARED, as given."""

    begin: float | None
    hours: float | None
    workload: str
    tables: Path | None
    allocator: AllocatorName
    look_ahead: float
    trainers: int
    rescale_up: float | None
    rescale_down: float | None
    warm_up: float | None
    cold_start: str
    finish: str
    unit: str
    measured_ring: bool
    plot: Path | None
    as_json: bool

    @property
    def span(self) -> Span:
        """What of the log."""
        return Span(begin=self.begin, hours=self.hours)

    def question(self) -> Question:
        """What is asked, without the log. Raises InputError, also for a picture that could not be written in the end."""
        if self.plot is not None and not os.access(self.plot.absolute().parent, os.W_OK | os.X_OK):
            raise InputError(f"--plot {self.plot}: cannot be written there")
        kinds = sets.load(self.workload, self.tables)
        return Question(
            kinds=kinds if self.unit == "samples" else tuple(each.in_speedup() for each in kinds),
            costs=Costs(grow_stall=self.rescale_up, shrink_stall=self.rescale_down, warmup=self.warm_up),
            measured_ring=self.measured_ring,
            rules=Rules(
                policy=Policy(allocator=self.allocator, look_ahead_seconds=self.look_ahead),
                trainers=self.trainers,
                charge_cold_start=self.cold_start == "charged",
                finish_is_event=self.finish == "event",
            ),
        )


def shared(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options above."""
    for option in reversed(SHARED):
        command = option(command)
    return command
