"""One task of a plain job: the launcher in every node, and in the first task the coordinator beside it.

``python -m commensald.plain.task TRAINING.toml``. Ends with 0 when the training has finished, 75 when it was asked to leave before that.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from pathlib import Path

import click
import psutil

from commensald.assembly import own_address
from commensald.cli.lazy import run
from commensald.config import load
from commensald.journal import log_to_stderr
from commensald.plain.coordinate import Outcome, coordinate
from commensald.plain.place import Place, launcher_environment, place
from commensald.strict import InputError
from commensald.trainings import TrainingSpec, load_training

log = logging.getLogger(__name__)


async def train(spec: TrainingSpec, here: Place, address: str, seconds: float | None = None) -> Outcome:
    """A task's life, of at most ``seconds``. The scheduler's signals reach the launcher and the training too: they are its processes."""
    asked, leave = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGUSR1):
        asyncio.get_running_loop().add_signal_handler(number, asked.set)
    if seconds is not None:
        asyncio.get_running_loop().call_later(seconds, _time_is_up, asked)
    launcher = await _launch(spec.folder, here.pilot)
    ended = asyncio.create_task(launcher.wait())
    if not here.first:
        failed = await ended != 0
        return Outcome.FAILED if failed else Outcome.ASKED_TO_LEAVE if asked.is_set() else Outcome.DONE
    ended.add_done_callback(lambda _: leave.set())
    try:
        outcome = await coordinate(spec, load().config, address, leave, array=here.array)
    except InputError:
        launcher.terminate()
        raise
    # A launcher that was not asked to end and failed by itself would do so again.
    return Outcome.FAILED if await ended else outcome


def _time_is_up(asked: asyncio.Event) -> None:
    """As if the scheduler had said so."""
    asked.set()
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()


async def _launch(folder: str, pilot: str) -> asyncio.subprocess.Process:
    argv = (sys.executable, "-m", "commensal.pilot", "--folder", folder, "--pilot", pilot)
    file = os.environ.get("PBS_NODEFILE")
    hosts = Path(file).read_text().split() if file else []
    return await asyncio.create_subprocess_exec(*argv, env=launcher_environment(os.environ, hosts))


def address_of_node() -> str:
    """Where the other nodes reach this one: the way out, else what its own name stands for. Raises InputError."""
    try:
        return load().config.daemon.bind or own_address()
    except InputError:
        name = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
        try:
            return socket.gethostbyname(name)
        except OSError as error:
            raise InputError(f"{name} has no address: give one in COMMENSAL_DAEMON_BIND") from error


@click.command()
@click.argument("training", type=click.Path(path_type=Path))
@click.option("--index", help="This job's index in its array, where the scheduler does not say (PBS).")
@click.option("--lowest", help="The array's lowest index, likewise.")
@click.option("--seconds", type=float, help="Leave after so long, as if the scheduler had asked for it.")
@click.option("--check", is_flag=True, help="Only say whether the training file can be used, and print the training's name and folder.")
def task(training: Path, check: bool, index: str | None, lowest: str | None, seconds: float | None) -> int:
    """Train what TRAINING describes, as one task of a plain job."""
    spec = load_training(training)
    if check:
        click.echo(f"{spec.name}\n{spec.folder}")
        return 0
    log_to_stderr(verbose=False)
    return asyncio.run(train(spec, place(os.environ, os.getpid(), lowest, index), address_of_node(), seconds))


if __name__ == "__main__":
    sys.exit(run(task))
