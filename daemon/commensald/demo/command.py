"""``commensal demo``: two trainings live in the holes of a busy virtual cluster on this machine."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click
import msgspec
from rich.console import Console

from commensald.demo import report, scenario, show
from commensald.demo.injection import Kills
from commensald.demo.show import Show
from commensald.demo.stage import Stage, StageError
from commensald.demo.summary import Summary, summarise
from commensald.events import Event, EventLog

TICK_SECONDS = 0.1
KILLS_AT = (0.33, 0.6)
"""Shares of the demo's time."""
OUTPUT = click.Path(path_type=Path, dir_okay=False, writable=True)


@click.command()
@click.option("--json", "json_path", type=OUTPUT, help="Write the summary to this file.")
@click.option("--events", "events_path", type=OUTPUT, help="Write all events to this file, one JSON line each.")
@click.option(
    "--plot", "plot_path", type=OUTPUT, default=Path("commensal-demo.png"), show_default=True, help="Write the timeline (PNG) to this file."
)
@click.option(
    "--trace", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Primary jobs from a Standard Workload Format file."
)
@click.option("--speedup", type=click.FloatRange(min=0, min_open=True), default=60.0, show_default=True, help="Trace seconds a second.")
@click.option("--nodes", type=click.IntRange(min=2), default=8, show_default=True, help="Virtual nodes.")
@click.option("--seconds", type=click.FloatRange(min=10), default=120.0, show_default=True, help="How long the clock runs.")
@click.option("--seed", type=int, default=339, show_default=True, help="Of the generated primary jobs.")
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), help="Work in this folder and keep it.")
def demo(
    json_path: Path | None,
    events_path: Path | None,
    plot_path: Path,
    trace: Path | None,
    speedup: float,
    nodes: int,
    seconds: float,
    seed: int,
    folder: Path | None,
) -> None:
    """Train in the holes of a busy cluster of virtual nodes, losing nodes all the while, and count what was lost."""
    for path in (json_path, events_path, plot_path):
        _check_writable(path)
    with _workplace(folder) as place:
        chosen = scenario.Scenario(folder=place, nodes=nodes, seconds=seconds, speedup=speedup, seed=seed, trace=trace)
        try:
            events = perform(chosen)
        except StageError as error:
            raise _failure(error) from error
    summary = summarise(events)
    _keep(summary, events, json_path, events_path)
    _plot(events, plot_path)
    Console().print(report.table(summary))


def perform(chosen: scenario.Scenario) -> list[Event]:
    """Run the demo from start to drained; gives all its events by time. Raises StageError."""
    scenario.write(chosen, time.time())
    log = EventLog(chosen.log("demo"))
    kills = Kills(due=tuple(chosen.seconds * share for share in KILLS_AT), patience=chosen.seconds / 8)
    with _stop_asked() as asked, show.open_show(chosen) as screen, Stage(chosen) as stage:
        log.emit("demo.started", nodes=chosen.nodes, trainings=list(scenario.TRAININGS))
        _run_clock(chosen, stage, screen, kills, asked)
        log.emit("demo.ended")
        screen.say("the clock has stopped; saving the trainings and giving the nodes back")
        stage.drain()
    log.close()
    return show.merge(chosen)


def _run_clock(chosen: scenario.Scenario, stage: Stage, screen: Show, kills: Kills, asked: Sequence[int]) -> None:
    begin = time.time()
    while (elapsed := time.time() - begin) < chosen.seconds and not asked:
        stage.check()
        screen.update(elapsed)
        victim = kills.victim(screen.board, elapsed)
        if victim is not None:
            stage.kill(screen.board.jobs[victim])
        time.sleep(TICK_SECONDS)


@contextmanager
def _stop_asked() -> Iterator[list[int]]:
    """A list that holds the signal once INT or TERM has come: the clock stops early, everything after it happens as usual."""
    asked: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        asked.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _workplace(folder: Path | None) -> Iterator[Path]:
    """The given folder, which must be new or empty and stays, or a temporary one that goes."""
    if folder is not None:
        folder = folder.absolute()
        _prepare(folder)
        yield folder
        return
    place = Path(tempfile.mkdtemp(prefix="commensal-demo-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        empty = not any(folder.iterdir())
    except OSError as error:
        raise click.UsageError(f"--folder {folder}: {error.strerror}") from error
    if not empty:
        raise click.UsageError(f"--folder {folder}: not empty")


def _failure(error: StageError) -> click.ClickException:
    """What a process refused is wrong use of the demo, in its own last words; anything else is shown with its last lines."""
    if error.refused:
        return click.UsageError((error.text.splitlines() or [str(error)])[-1].removeprefix("error: "))
    click.echo(error.text, err=True)
    return click.ClickException(str(error))


def _check_writable(path: Path | None) -> None:
    """A figure that cannot be written is better known before two minutes have passed."""
    if path is None:
        return
    folder = path.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise click.UsageError(f"{path}: {'not writable' if folder.is_dir() else 'no such folder'}: {folder}")


def _keep(summary: Summary, events: Sequence[Event], json_path: Path | None, events_path: Path | None) -> None:
    if json_path is not None:
        json_path.write_bytes(msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n")
    if events_path is not None:
        events_path.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))


def _plot(events: Sequence[Event], path: Path) -> None:
    try:
        from commensald.demo import timeline
    except ModuleNotFoundError as error:
        click.echo(f"no timeline: {error.name} is not installed (pip install 'commensal[plots]')", err=True)
        return
    timeline.draw(events, path)
    click.echo(f"timeline: {path}")
