"""status, windows, drain."""

from __future__ import annotations

import time
from pathlib import Path

import click

from commensald import requests
from commensald.cli.ask import ask
from commensald.cli.lazy import Failed
from commensald.cli.tables import duration, json_option, number, print_json, print_table
from commensald.coordinator import TrainingStatus


@click.command()
@json_option
@click.pass_obj
def status(socket: Path, as_json: bool) -> None:
    """Show the daemon, its pilots and its rings."""
    report = ask(socket, requests.Status()).status
    assert report is not None
    if as_json:
        print_json(report)
        return
    click.echo(_daemon(report))
    for each in report.trainings:
        _print_ring(each)
    if report.pilots:
        click.echo()
        print_table(("PILOT", "JOB", "NODE", "STATE", "TRAINING", "ENDS IN"), [_pilot(each) for each in report.pilots])


def _daemon(report: requests.StatusReport) -> str:
    lines = [
        f"commensald {report.version}, life {report.incarnation}, up {duration(report.up_seconds)}, account {report.owner}",
        f"{report.scheduler}: {report.nodes} nodes, {report.open_nodes} without a primary job, "
        f"seen {duration(report.snapshot_age_seconds, 'never')} ago",
    ]
    if report.frozen:
        lines.append(f"FROZEN, no decisions: {report.frozen}")
    if report.draining:
        lines.append("DRAINING: takes no nodes; 'commensal drain --undo' ends that")
    if report.stopped:
        lines.append(f"STOPPED, all nodes are given back: {report.stopped}")
    if report.left_alone:
        lines.append(f"left alone for a while, pilots died there at once: {', '.join(report.left_alone)}")
    return "\n".join(lines)


def _print_ring(ring: TrainingStatus) -> None:
    click.echo(
        f"\n{ring.training}: generation {ring.generation or '-'}, {ring.settled} steps, {ring.samples} samples, epoch {ring.epoch}, "
        f"loss {number(ring.loss, 4)}, checkpoint {'-' if ring.checkpoint is None else ring.checkpoint}, steps lost {ring.steps_lost}"
    )
    if ring.checkpoint_error:
        kept = "" if ring.checkpoint is None else f", that of step {ring.checkpoint} is kept"
        click.echo(f"last save failed{kept}: {ring.checkpoint_error}")
    if ring.starting:
        click.echo(f"{ring.starting} more starting")
    if ring.members:
        cells = [(each.member, each.node, each.state, number(each.closed), number(each.speed, 1)) for each in ring.members]
        print_table(("MEMBER", "NODE", "STATE", "CLOSED", "SAMPLES/S"), cells)


def _pilot(row: requests.PilotRow) -> tuple[str, ...]:
    idle = "idle" if row.state == "running" else "-"
    return row.uuid, row.job or "-", row.node or "(any)", row.state, row.training or idle, duration(row.ends_in_seconds, "no end")


@click.command()
@json_option
@click.pass_obj
def windows(socket: Path, as_json: bool) -> None:
    """List the holes: which node is idle, until when, and what will claim it."""
    found = ask(socket, requests.Windows()).windows
    if as_json:
        print_json(found)
        return
    _warn_of_stale(socket)
    columns = ("NODE", "OPENS", "CLOSES", "FREE IN 5 MIN", "PILOT", "CLAIMED BY", "REASON")
    print_table(
        columns,
        [
            (
                each.node,
                duration(each.opens_seconds) if each.opens_seconds else "now",
                duration(each.closes_seconds, "open end"),
                number(each.alive_5min, 2),
                "yes" if each.held else "-",
                each.claimed_by or "-",
                each.reason,
            )
            for each in found
        ],
    )


def _warn_of_stale(socket: Path) -> None:
    report = ask(socket, requests.Status()).status
    if report is not None and report.frozen:
        click.echo(f"note: as last seen {duration(report.snapshot_age_seconds, 'never')} ago: {report.frozen}", err=True)


@click.command()
@click.option("--undo", is_flag=True, help="Take nodes again.")
@click.option("--wait", "wait_seconds", type=float, default=60.0, show_default=True, help="Seconds to wait for it; 0: none.")
@json_option
@click.pass_obj
def drain(socket: Path, undo: bool, wait_seconds: float, as_json: bool) -> None:
    """Save every training, give all nodes back, and take no more."""
    ask(socket, requests.Drain(undo=undo))
    waits = not undo and wait_seconds > 0
    if waits:
        wait_drained(socket, wait_seconds)
    if as_json:
        print_json({"draining": not undo, "drained": waits})
    else:
        click.echo("nodes are taken again" if undo else "drained" if waits else "draining")


def wait_drained(socket: Path, seconds: float) -> None:
    """Until no pilot is left. Raises Failed after ``seconds``."""
    give_up = time.monotonic() + seconds
    while (report := ask(socket, requests.Status()).status) is not None and report.pilots:
        if time.monotonic() > give_up:
            raise Failed(f"{len(report.pilots)} pilots are still there after {seconds:g} s")
        time.sleep(0.1)
