"""The command line of scripts/slurm-cluster."""

from __future__ import annotations

import argparse
import getpass
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from slurm_cluster import lifecycle, packages, releases
from slurm_cluster.settings import ClusterError, Layout

VERSIONS = ("22.05", *releases.SUITES)
DESCRIPTION = """A real Slurm on this machine: one slurmctld, several slurmd, a munged of its own, on free ports.
As root (daemons as slurm and munge, jobs of any user) or as an ordinary user (only that user's jobs).
`eval $(scripts/slurm-cluster env)` makes sbatch, squeue and commensald speak to it."""
EPILOG = """up starts what does not run: a killed daemon comes back. Two partitions: primary (default) preempts scavenger (REQUEUE).
A --version that is not installed is downloaded once from Debian (fetch does only that) and runs beside the installed one, for any user."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 done, 1 failed, 2 wrong use."""
    options = _parser().parse_args(arguments)
    layout = Layout(options.folder.resolve())
    try:
        print(_do(options, layout))
        return 0
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
    except OSError as error:
        print(f"error: {error.filename or layout.folder}: {error.strerror}", file=sys.stderr)
    return 1


def _do(options: argparse.Namespace, layout: Layout) -> str:
    match options.command:
        case "up":
            return lifecycle.up(layout, options.version, options.nodes, options.grace)
        case "fetch":
            found, programs = packages.require(options.version)
            return f"Slurm {found} in {programs or '/usr'}"
        case "env":
            return _environment(layout)
        case "down":
            return lifecycle.down(layout)
        case _:
            return lifecycle.status(layout)


def _environment(layout: Layout) -> str:
    path = [f"PATH={shlex.quote(str(layout.programs / 'bin'))}:$PATH"] if layout.programs.exists() else []
    return " ".join(["export", f"SLURM_CONF={shlex.quote(str(layout.conf))}", *path])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="slurm-cluster", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("command", choices=("up", "down", "status", "env", "fetch"))
    parser.add_argument("--nodes", type=_positive, default=4, help="how many (4)")
    parser.add_argument("--grace", type=_positive, default=5, metavar="SECONDS", help="GraceTime of the scavenger partition (5)")
    parser.add_argument("--version", choices=VERSIONS, help="of Slurm (the installed one)")
    folder = Path(f"/var/tmp/slurm-cluster-{getpass.getuser()}")
    parser.add_argument("--folder", type=Path, default=folder, help="where it lives (%(default)s)")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected 1 or more")
    return number
