"""Attributes as PBS prints them: ``-F json`` with tabs, and text of at most 80 columns. Pure; held against the captures byte for byte."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

Attributes = Mapping[str, Any]
"""Name -> value: text, a whole number, a list of texts, or a table of the same."""
Table = dict[str, Any]
"""The same, in the making."""
WIDTH = 79
NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?")


def day(at: float | None) -> str | None:
    """As ctime(3), in the time zone of whoever asks."""
    return None if at is None else time.strftime("%a %b %e %H:%M:%S %Y", time.localtime(at))


def given(table: Table) -> Table:
    """Without what is not set."""
    return {name: value for name, value in table.items() if value is not None}


def as_json(table: Attributes) -> str:
    """What ``-F json`` prints. A text that reads like a number stands there without quotes, leading zeros and all (openpbs#1255)."""
    return _json(table, 0) + "\n"


def _json(value: Any, depth: int) -> str:  # noqa: ANN401 - JSON
    if isinstance(value, Mapping):
        lines = ",\n".join(f'{chr(9) * (depth + 1)}"{name}":\t{_json(each, depth + 1)}' for name, each in value.items())
        return "{\n" + lines + "\n" + "\t" * depth + "}" if value else "{\n" + "\t" * depth + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_json(each, depth) for each in value) + "]"
    if isinstance(value, int) or NUMBER.fullmatch(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def as_text(heading: str, attributes: Attributes, indent: int = 4, wrap: bool = True) -> str:
    """One object of ``qstat -f``, ``pbsnodes -a`` or ``qmgr -c "list ..."``, without the empty line after it."""
    lines = (f"{' ' * indent}{name} = {value}" for name, value in _flat(attributes))
    return "".join(f"{line}\n" for line in (heading, *(map(fold, lines) if wrap else lines)))


def fold(line: str) -> str:
    """Break after commas where the next part does not fit, and inside a part that no line holds."""
    done, column = "", 0
    for number, piece in enumerate(re.findall(r"[^,]*,|[^,]+$", line)):
        length = len(piece.rstrip(","))
        if number and column + length > WIDTH:
            # PBS counts the first line of an overlong part from 15: so the captures show.
            done, column = done + "\n\t", 15 if 8 + length > WIDTH else 8
        for character in piece:
            if column >= WIDTH and character != ",":
                done, column = done + "\n\t", 8
            done, column = done + character, column + 1
    return done


def _flat(attributes: Attributes) -> Iterator[tuple[str, str]]:
    for name, value in attributes.items():
        if name == "Variable_List":
            yield name, ",".join(f"{key}={_escaped(str(each))}" for key, each in value.items())
        elif isinstance(value, Mapping):
            yield from ((f"{name}.{key}", str(each)) for key, each in value.items())
        else:
            yield name, ", ".join(value) if isinstance(value, list) else str(value)


def _escaped(value: str) -> str:
    """A comma in a variable's value is not the end of it."""
    return value.replace(",", "\\,")
