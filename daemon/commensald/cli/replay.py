"""replay: the daemon's decisions on recorded clusters."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import click
import msgspec
from rich.console import Console
from rich.progress import Progress

from commensald.cli.lazy import Failed
from commensald.cli.tables import json_option, print_json, print_table
from commensald.decision import AllocatorName, Policy
from commensald.replay import logs, primaries, sets
from commensald.replay.measure import Answer, Question, answer, report
from commensald.replay.reference import Watch
from commensald.replay.report import Report, rows
from commensald.replay.simulate import Rules, Tick
from commensald.replay.traces import Log, Span, Trace, trace
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
    """What every kind of log takes."""

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


@click.group()
def replay() -> None:
    """Replay the idle nodes of a recorded cluster: what would have been trained in them, against dedicated nodes.

    Every node of the pool holds a running pilot, without lag, and the daemon's own decide() shares them among the trainers.
    """


def _nodes(command: Callable[..., None]) -> Callable[..., None]:
    command = click.option("--node-order", type=FILE, help="Node names, one a line; else in the log's order.")(command)
    return click.option("--nodes", type=COUNT, help="Only the first so many nodes.")(command)


@replay.command("idle-events")
@click.argument("file", type=FILE)
@_nodes
@shared
def idle_events(file: Path, nodes: int | None, node_order: Path | None, **options: Any) -> None:  # noqa: ANN401 - click's own
    """FILE has lines "unix_time,node,idle": 1 became idle, 0 was taken."""
    _recorded(logs.idle_events, file, nodes, node_order, Options(**options))


@replay.command("sinfo-log")
@click.argument("file", type=FILE)
@_nodes
@shared
def sinfo_log(file: Path, nodes: int | None, node_order: Path | None, **options: Any) -> None:  # noqa: ANN401 - click's own
    """FILE has polls of sinfo: a time, the nodes that held a pilot, lines of idle nodes, "----".

    Only what is plainly idle, or held a pilot, counts: idle~, idle#, idle% and idle* could not start anything.
    """
    _recorded(logs.sinfo_log, file, nodes, node_order, Options(**options))


@replay.command("swf")
@click.argument("file", type=FILE)
@click.option("--nodes", type=COUNT, help="A machine of so many nodes, each job with the same share of it; else the log's.")
@click.option("--exit", "exit_seconds", type=Number(0, 30), default=0.5, show_default=True, help="A pilot is gone so soon.")
@shared
def swf(file: Path, nodes: int | None, exit_seconds: float, **options: Any) -> None:  # noqa: ANN401 - click's own
    """FILE is a log in the Standard Workload Format: its jobs run again on the embedded cluster, pilots on all idle nodes."""
    asked, began = Options(**options), time.perf_counter()
    with _progress() as watch:
        question = asked.question()
        machine = primaries.machine(file, Span(begin=asked.begin, hours=asked.hours), nodes)
        pool, delays = primaries.run(machine, exit_seconds, watch("primary jobs"))
        found = answer(question, pool, time.perf_counter, watch)
    _show(asked, found, report(found, pool, time.perf_counter() - began, delays), pool, file)


def _recorded(read: Callable[[Path], Log], file: Path, nodes: int | None, node_order: Path | None, asked: Options) -> None:
    began = time.perf_counter()
    with _progress() as watch:
        question, log = asked.question(), read(file)
        pool = trace(
            log, Span(begin=asked.begin, hours=asked.hours), _first(nodes, logs.node_order(node_order) if node_order else log.nodes)
        )
        found = answer(question, pool, time.perf_counter, watch)
    _show(asked, found, report(found, pool, time.perf_counter() - began), pool, file)


def _first(nodes: int | None, order: tuple[str, ...]) -> tuple[str, ...]:
    if nodes is not None and nodes > len(order):
        raise InputError(f"--nodes {nodes}: there are {len(order)}")
    return order[:nodes]


def _show(asked: Options, found: Answer, figures: Report, pool: Trace, file: Path) -> None:
    if asked.plot is not None:
        _plot(
            asked.plot, found, pool, f"{file.name}, {pool.seconds / 3600:.0f} h, {asked.workload}, {asked.allocator}: U = {figures.u:.3f}"
        )
    if asked.as_json:
        print_json(figures)
    else:
        print_table(("figure", "value", "meaning"), rows(figures))


def _plot(path: Path, found: Answer, pool: Trace, title: str) -> None:
    try:
        from commensald.replay import plot
    except ModuleNotFoundError as error:
        raise Failed(f"--plot: {error.name} is not installed (pip install 'commensal[plots]')") from error
    try:
        plot.draw(found, pool, title, path)
    except OSError as error:
        raise InputError(f"--plot {path}: cannot be written: {error.strerror}") from error


@contextmanager
def _progress() -> Iterator[Watch]:
    """A bar for each stretch of work, on a terminal only."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:

        def watch(what: str) -> Tick:
            task = progress.add_task(what, total=1.0)
            return lambda share: progress.update(task, completed=share)

        yield watch
