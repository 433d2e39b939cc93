"""replay: the daemon's decisions on recorded clusters."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from commensald.cli.lazy import Failed
from commensald.cli.replay_options import COUNT, FILE, Number, Options, shared
from commensald.cli.tables import print_json, print_table
from commensald.replay import logs, primaries
from commensald.replay.measure import Answer, answer, report
from commensald.replay.reference import Watch
from commensald.replay.report import Report, rows
from commensald.replay.simulate import Tick
from commensald.replay.traces import Log, Trace, trace
from commensald.strict import InputError


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
        machine = primaries.machine(file, asked.span, nodes)
        pool, delays = primaries.run(machine, exit_seconds, watch("primary jobs"))
        found = answer(question, pool, time.perf_counter, watch)
    _show(asked, found, report(found, pool, time.perf_counter() - began, delays), pool, file)


def _recorded(read: Callable[[Path], Log], file: Path, nodes: int | None, node_order: Path | None, asked: Options) -> None:
    began = time.perf_counter()
    with _progress() as watch:
        question, log = asked.question(), read(file)
        pool = trace(log, asked.span, _first(nodes, logs.node_order(node_order) if node_order else log.nodes))
        found = answer(question, pool, time.perf_counter, watch)
    _show(asked, found, report(found, pool, time.perf_counter() - began), pool, file)


def _first(nodes: int | None, order: tuple[str, ...]) -> tuple[str, ...]:
    if nodes is not None and nodes > len(order):
        raise InputError(f"--nodes {nodes}: there are {len(order)}")
    return order[:nodes]


def _show(asked: Options, found: Answer, figures: Report, pool: Trace, file: Path) -> None:
    title = f"{file.name}, {pool.seconds / 3600:.0f} h, {asked.workload}, {asked.allocator}: U = {figures.u:.3f}"
    if asked.plot is not None:
        _plot(asked.plot, found, pool, title)
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
