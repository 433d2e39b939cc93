"""``commensald local-cluster``: the embedded cluster from the command line."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import click

from commensald.events import Emit, EventLog
from commensald.listening import listen
from commensald.schedulers.local.generator import generate
from commensald.schedulers.local.jobs import Policy
from commensald.schedulers.local.server import Server
from commensald.schedulers.local.swf import SwfError, read
from commensald.schedulers.local.trace import Scale, workload
from commensald.schedulers.local.workload import WorkloadJob
from commensald.strict import InputError


class WrongUseError(click.ClickException):
    """One line, exit code 2."""

    exit_code = 2


@click.command("local-cluster")
@click.option("--socket", "socket_path", type=click.Path(path_type=Path), required=True, help="UNIX socket to serve on.")
@click.option("--nodes", type=click.IntRange(min=1), default=8, show_default=True, help="How many virtual nodes.")
@click.option("--trace", type=click.Path(path_type=Path), help="Primary jobs from a Standard Workload Format file, plain or gzip.")
@click.option("--generate", "seed", type=int, help="Primary jobs from our own generator, with this seed.")
@click.option("--speedup", type=click.FloatRange(min=0, min_open=True), default=60.0, show_default=True, help="Trace seconds a second.")
@click.option("--grace", type=click.FloatRange(min=0), default=30.0, show_default=True, help="Seconds from SIGTERM to SIGKILL.")
@click.option("--kill-wait", type=click.FloatRange(min=0), default=10.0, show_default=True, help="The same at a limit or a cancel.")
@click.option("--preempt-signal", type=click.Choice(["TERM", "USR1"]), default="TERM", show_default=True, help="What begins the grace.")
@click.option("--slurm-like", is_flag=True, help="Whole-minute limits; no pilot across a planned start; free nodes first.")
@click.option("--events", "events_path", type=click.Path(path_type=Path), help="Append one JSON line an event to this file.")
@click.option("--duration", type=click.FloatRange(min=0), help="End after so many seconds.")
def local_cluster(
    socket_path: Path,
    nodes: int,
    trace: Path | None,
    seed: int | None,
    speedup: float,
    grace: float,
    kill_wait: float,
    preempt_signal: str,
    slurm_like: bool,
    events_path: Path | None,
    duration: float | None,
) -> None:
    """Run a cluster of virtual nodes on this host: real processes, simulated nodes."""
    if trace is not None and seed is not None:
        raise WrongUseError("--trace and --generate exclude each other")
    policy = Policy(grace_seconds=grace, kill_wait_seconds=kill_wait, preempt_signal=preempt_signal, slurm_like=slurm_like)
    jobs = _workload(trace, seed, nodes, speedup)
    try:
        asyncio.run(_serve(socket_path, nodes, policy, jobs, events_path, duration))
    except InputError as error:
        raise WrongUseError(str(error)) from error


def _workload(trace: Path | None, seed: int | None, nodes: int, speedup: float) -> Iterator[WorkloadJob]:
    if seed is not None:
        return generate(seed, nodes)
    if trace is None:
        return iter(())
    try:
        return iter(workload(read(trace), Scale(nodes=nodes, speedup=speedup)))
    except SwfError as error:
        raise WrongUseError(str(error)) from error
    except OSError as error:
        raise WrongUseError(f"{trace}: {error.strerror or error}") from error


async def _serve(
    path: Path, nodes: int, policy: Policy, jobs: Iterator[WorkloadJob], events_path: Path | None, duration: float | None
) -> None:
    names = [f"n{number}" for number in range(1, nodes + 1)]
    listener = listen(path)
    try:
        events = _event_log(events_path) if events_path is not None else None
        emit: Emit = events.emit if events is not None else _silent
        await Server(nodes=names, policy=policy, workload=jobs, emit=emit, version=version("commensal")).run(listener, duration)
    finally:
        path.unlink(missing_ok=True)
        listener.close()


def _event_log(path: Path) -> EventLog:
    try:
        return EventLog(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


def _silent(kind: str, **fields: object) -> None:
    """Nobody asked for events."""
