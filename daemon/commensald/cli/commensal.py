"""``commensal``: what a researcher or an administrator types."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from commensald.cli.lazy import Group, run
from commensald.config import load

ELSEWHERE = {
    "submit": "commensald.cli.trainings:submit",
    "trainings": "commensald.cli.trainings:trainings",
    "pause": "commensald.cli.trainings:pause",
    "resume": "commensald.cli.trainings:resume",
    "cancel": "commensald.cli.trainings:cancel",
    "status": "commensald.cli.status:status",
    "windows": "commensald.cli.status:windows",
    "drain": "commensald.cli.status:drain",
    "config": "commensald.cli.configuration:config",
    "doctor": "commensald.cli.doctor:doctor",
    "plan": "commensald.cli.plan:plan",
    "demo": "commensald.demo.command:demo",
    "replay": "commensald.cli.replay:replay",
}
ALONE = frozenset(("config", "demo", "doctor", "plan", "replay"))
"""Commands that ask no daemon."""


@click.group(cls=Group, elsewhere=ELSEWHERE, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="commensal", prog_name="commensal")
@click.option("--config", "path", type=click.Path(path_type=Path), help="Use this file instead of those in /etc and $XDG_CONFIG_HOME.")
@click.option("--socket", type=click.Path(path_type=Path), help="The daemon's socket (daemon.socket).")
@click.pass_context
def commensal(context: click.Context, path: Path | None, socket: Path | None) -> None:
    """Elastic training in the idle nodes of a cluster: ask the daemon, or try the demo."""
    context.meta["commensal.config"] = path
    if context.invoked_subcommand not in ALONE:
        context.obj = socket or Path(load(path).config.daemon.socket)


def main() -> None:
    """Entry point."""
    sys.exit(run(commensal))
