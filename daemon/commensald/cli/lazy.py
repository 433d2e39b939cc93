"""Command groups: commands imported when they are used, errors on one line."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from commensald.strict import InputError


class Group(click.Group):
    """A group whose commands live in modules of their own: ``elsewhere`` maps a name to "module:attribute"."""

    def __init__(self, *args: Any, elsewhere: Mapping[str, str] | None = None, **kwargs: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(*args, **kwargs)
        self._elsewhere = dict(elsewhere or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Those here and those elsewhere."""
        return sorted({*super().list_commands(ctx), *self._elsewhere})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import it, if it lives elsewhere."""
        if cmd_name not in self._elsewhere:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self._elsewhere[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Click's own, and the nearest name for one that there is not."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not near:
                raise
            raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx) from error


class Failed(Exception):
    """A command did not do what it was asked for: exit code 1; the message is one line."""


def run(command: click.Command, arguments: Sequence[str] | None = None) -> int:
    """Run a command line: 0 done, 1 failed, 2 wrong use; every error is one line on standard error."""
    try:
        result = command.main(args=arguments, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        return _complain(error.format_message(), error.exit_code)
    except InputError as error:
        return _complain(str(error), 2)
    except Failed as error:
        return _complain(str(error), 1)
    except (click.Abort, KeyboardInterrupt):
        return 130


def _complain(message: str, code: int) -> int:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return code
