"""submit, trainings, pause, resume, cancel."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import click

from commensald import requests
from commensald.cli.ask import ask
from commensald.cli.tables import duration, json_option, number, print_json, print_table
from commensald.goals import Outlook
from commensald.keys import public_key
from commensald.ledger import TrainingState
from commensald.trainings import load_training, unused


def submit_training(path: Path, socket: Path) -> str:
    """Check a training file, make the training's key pair, hand it to the daemon; gives its name. Raises InputError, Failed."""
    spec = load_training(path, owner=pwd.getpwuid(os.getuid()).pw_name)
    ask(socket, requests.Submit(spec=spec, public_key=public_key(Path(spec.folder))))
    for key in unused(spec):
        click.echo(f"note: {path}: {key} is not looked at yet", err=True)
    return spec.name


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@json_option
@click.pass_obj
def submit(socket: Path, file: Path, as_json: bool) -> None:
    """Hand the training described by FILE to the daemon."""
    _say("submitted", submit_training(file, socket), as_json)
    _note_drain(socket)


@click.command()
@json_option
@click.pass_obj
def trainings(socket: Path, as_json: bool) -> None:
    """List the trainings."""
    rows = ask(socket, requests.Trainings()).trainings
    if as_json:
        print_json(rows)
        return
    columns = ("NAME", "STATE", "MEMBERS", "NODES", "STEPS", "SAMPLES", "EPOCH", "LOSS")
    print_table(columns, [_cells(each) for each in rows])
    for each in rows:
        if each.failures and each.state not in (TrainingState.FINISHED, TrainingState.CANCELLED):
            again = f", again in {duration(each.retry_in_seconds)}" if each.retry_in_seconds is not None else ""
            click.echo(f"\n{each.name}: failed {each.failures} times in a row{again}; its last lines:\n{each.tail}")
        if each.state is TrainingState.FINISHED and each.tail:
            click.echo(f"\n{each.name}: {each.tail}")
        if each.outlook is not None and each.state is TrainingState.ACTIVE:
            click.echo(f"\n{each.name}: {_outlook(each.outlook)}")
        if each.waits:
            click.echo(f"\n{each.name}: waits: {each.waits}")
        if each.checkpoint_error is not None:
            click.echo(f"\n{each.name}: the last save failed: {each.checkpoint_error}")


def _cells(row: requests.TrainingRow) -> tuple[str, ...]:
    state = "backing off" if row.retry_in_seconds is not None else str(row.state)
    nodes = f"{row.min_nodes}-{row.max_nodes}"
    members = f"{row.members} (+{row.starting} starting)" if row.starting else str(row.members)
    return row.name, state, members, nodes, str(row.steps), str(row.samples), str(row.epoch), number(row.loss, 4)


def _outlook(outlook: Outlook) -> str:
    if outlook.nodes is None:
        return f"nothing is foreseen of its goal: {outlook.note}"
    late = "" if outlook.in_time else ", later than asked for"
    return f"its goal takes {duration(outlook.seconds)} on {outlook.nodes} nodes{late}"


@click.command()
@click.argument("training")
@json_option
@click.pass_obj
def pause(socket: Path, training: str, as_json: bool) -> None:
    """Save TRAINING and give its nodes back."""
    ask(socket, requests.Pause(training=training))
    _say("paused", training, as_json)


@click.command()
@click.argument("training")
@json_option
@click.pass_obj
def resume(socket: Path, training: str, as_json: bool) -> None:
    """Let TRAINING go on, even one that was cancelled or has failed."""
    ask(socket, requests.Resume(training=training))
    _say("resumed", training, as_json)
    _note_drain(socket)


@click.command()
@click.argument("training")
@json_option
@click.pass_obj
def cancel(socket: Path, training: str, as_json: bool) -> None:
    """End TRAINING; its checkpoints stay."""
    ask(socket, requests.Cancel(training=training))
    _say("cancelled", training, as_json)


def _say(done: str, training: str, as_json: bool) -> None:
    if as_json:
        print_json({"done": done, "training": training})
    else:
        click.echo(f"{done} {training}")


def _note_drain(socket: Path) -> None:
    report = ask(socket, requests.Status()).status
    if report is not None and report.draining:
        click.echo("note: the daemon is draining: nothing starts until 'commensal drain --undo'", err=True)
