"""What a command sends to the server, and what it gets back."""

from __future__ import annotations

import msgspec


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A command as somebody typed it; ``script`` is what ``qsub`` read."""

    program: str
    argv: list[str]
    folder: str
    user: str
    environment: dict[str, str]
    script: str | None = None


class Reply(msgspec.Struct, kw_only=True):
    """``read`` asks for the script first: a path, or ``-`` for standard input."""

    out: str = ""
    errors: str = ""
    code: int = 0
    read: str | None = None
