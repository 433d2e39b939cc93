"""``commensald``: the daemon in the foreground, as systemd runs it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from commensald.cli.lazy import Group, run
from commensald.config import load
from commensald.journal import log_to_stderr


@click.group(
    cls=Group,
    elsewhere={"local-cluster": "commensald.schedulers.local.command:local_cluster"},
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="commensal", prog_name="commensald")
@click.option("--config", "path", type=click.Path(path_type=Path), help="Use this file instead of those in /etc and $XDG_CONFIG_HOME.")
@click.option("--verbose", "-v", is_flag=True, help="Say more.")
@click.pass_context
def commensald(context: click.Context, path: Path | None, verbose: bool) -> None:
    """Predict the holes of a cluster and train in them. Runs in the foreground until SIGTERM; the rings train on without it.

    SIGHUP makes it read its configuration again.
    """
    if context.invoked_subcommand is None:
        log_to_stderr(verbose=verbose)
        config = load(path).config
        from commensald.assembly import serve  # after the configuration has been found good

        asyncio.run(serve(config, lambda: load(path).config))


def main() -> None:
    """Entry point."""
    sys.exit(run(commensald))
