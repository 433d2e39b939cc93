"""Listings: a table on a terminal, plain columns elsewhere, JSON when asked for."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
import msgspec
from rich.console import Console
from rich.table import Table

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def print_json(value: object) -> None:
    """``value`` as JSON, one level indented."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows under their columns."""
    if sys.stdout.isatty():
        table = Table(*columns, box=None, header_style="bold")
        for row in rows:
            table.add_row(*row)
        Console().print(table)  # which honours NO_COLOR
        return
    widths = [max(len(line[index]) for line in (columns, *rows)) for index in range(len(columns))]
    for line in (columns, *rows):
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def number(value: float | None, digits: int = 0) -> str:
    """A figure, or a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def duration(seconds: float | None, none: str = "-") -> str:
    """Seconds as people say them: 42s, 3m10s, 2h05m."""
    if seconds is None:
        return none
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    return f"{whole // 60}m{whole % 60:02}s" if whole < 3600 else f"{whole // 3600}h{whole % 3600 // 60:02}m"
