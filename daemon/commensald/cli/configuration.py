"""config check, config show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import toml

from commensald.cli.tables import json_option, print_json
from commensald.config import Loaded, load, sections


@click.group()
def config() -> None:
    """Check or show the configuration."""


@config.command()
@click.option("--config", "path", type=click.Path(path_type=Path), help="Use this file alone.")
@json_option
@click.pass_context
def check(context: click.Context, path: Path | None, as_json: bool) -> None:
    """Read the configuration and say whether it can be used."""
    loaded = load(path or context.meta.get("commensal.config"))
    if as_json:
        print_json({"good": True, "files": loaded.files})
        return
    click.echo(f"good: {', '.join(loaded.files) or 'defaults only'}")


@config.command()
@click.option("--config", "path", type=click.Path(path_type=Path), help="Use this file alone.")
@click.option("--origin", is_flag=True, help="Say where each value comes from.")
@json_option
@click.pass_context
def show(context: click.Context, path: Path | None, origin: bool, as_json: bool) -> None:
    """Print every value in force."""
    loaded = load(path or context.meta.get("commensal.config"))
    if as_json:
        print_json(_with_origins(loaded) if origin else sections(loaded.config))
        return
    click.echo(_annotated(loaded) if origin else toml.dumps(sections(loaded.config)).rstrip())


def _with_origins(loaded: Loaded) -> dict[str, dict[str, Any]]:
    return {
        section: {key: {"value": value, "origin": loaded.origins.get(f"{section}.{key}", "default")} for key, value in table.items()}
        for section, table in sections(loaded.config).items()
    }


def _annotated(loaded: Loaded) -> str:
    return "\n".join(f"[{section}]\n{_lines(section, table, loaded.origins)}" for section, table in sections(loaded.config).items())


def _lines(section: str, table: Mapping[str, Any], origins: Mapping[str, str]) -> str:
    values = {key: f"{key} = {_value(value)}" for key, value in table.items()}
    return "".join(f"{text:<60} # {origins.get(f'{section}.{key}', 'default')}\n" for key, text in values.items())


def _value(value: object) -> str:
    encoder = toml.TomlEncoder()
    return str(encoder.dump_inline_table(value) if isinstance(value, dict) else encoder.dump_value(value)).replace("\n", "")
