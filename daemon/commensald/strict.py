"""Strict reading of TOML: what a person wrote is understood whole, or refused in one clear line.

An unknown key is refused with the nearest known one, a wrong type is named with its file and key.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import msgspec

Section = TypeVar("Section", bound=msgspec.Struct)
_TYPE = re.compile(r", got \S+$")
_AT = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<key>.*)`)?$", re.DOTALL)


class InputError(Exception):
    """What a person gave us cannot be used; the message is one line that says what, where and what was expected."""


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of ``path``. Raises InputError."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not TOML: {error}") from error


def convert(table: Mapping[str, Any], into: type[Section], where: str, prefix: str = "") -> Section:
    """``table`` as ``into``; ``where`` names the file for messages, ``prefix`` the tables around it. Raises InputError."""
    refuse_unknown(table, into, where, prefix)
    try:
        return msgspec.convert(table, into)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {_explain(str(error), into, prefix, table)}") from error


def refuse_unknown(table: Mapping[str, Any], into: type[msgspec.Struct], where: str, prefix: str = "") -> None:
    """Raises InputError at the first key, at any depth, that ``into`` has no field for."""
    sections = {field.encode_name: field.type for field in msgspec.structs.fields(into)}
    for key, value in table.items():
        if key not in sections:
            raise InputError(f"{where}: {unknown(prefix + key, [prefix + name for name in sections])}")
        inner = _struct(sections[key])
        if inner is not None and isinstance(value, Mapping):
            refuse_unknown(value, inner, where, f"{prefix}{key}.")
        entry = _entry(sections[key])
        if entry is not None and isinstance(value, Mapping):
            for name, one in ((name, one) for name, one in value.items() if isinstance(one, Mapping)):
                # Each by its name: msgspec calls every one [...].
                convert(one, entry, where, f"{prefix}{key}.{name}.")


def unknown(key: str, known: Iterable[str], what: str = "key") -> str:
    """Words for an unknown ``key``, with the nearest of ``known`` where one is near."""
    near = difflib.get_close_matches(key, list(known), n=1, cutoff=0.5)
    return f"unknown {what} '{key}'" + (f" (did you mean '{near[0]}'?)" if near else "")


def _entry(annotation: object) -> type[msgspec.Struct] | None:
    """The struct of a ``dict[str, Struct]``."""
    return _struct(get_args(annotation)[1]) if get_origin(annotation) is dict else None


def _struct(annotation: object) -> type[msgspec.Struct] | None:
    options = () if get_origin(annotation) is dict else (annotation, *getattr(annotation, "__args__", ()))  # there keys are names
    return next((each for each in options if isinstance(each, type) and issubclass(each, msgspec.Struct)), None)


def _explain(message: str, into: type[msgspec.Struct], prefix: str, table: Mapping[str, Any]) -> str:
    """msgspec's words, the key first and the value last: "Expected `int`, got `str` - at `$.a.b`" becomes "a.b: expected int, got 'x'"."""
    match = _AT.match(message)
    assert match is not None
    what = match["what"].replace("`", "")
    what = what[:1].lower() + what[1:]
    missing = re.match(r"object missing required field (\S+)", what)
    if missing:
        return f"key '{prefix}{'.'.join(filter(None, (match['key'], missing[1])))}' is missing"
    if what.startswith("invalid enum value"):
        what = f"expected {_choices(into, match['key'] or '')}, got{what.removeprefix('invalid enum value')}"
    elif match["key"] and "[...]" not in match["key"]:
        what = f"{_TYPE.sub('', what)}, got {_given(table, match['key'])!r}"
    return f"{prefix}{match['key']}: {what}" if match["key"] else what


def _given(table: Mapping[str, Any], key: str) -> object:
    """The value at ``a.b[0].c``."""
    value: Any = table
    for part in re.findall(r"[^.\[\]]+", key):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def _choices(into: type[msgspec.Struct], key: str) -> str:
    """The values that the Literal at the dotted ``key`` allows."""
    inner: object = into
    for name in key.split("."):
        struct = _struct(inner)
        inner = {field.encode_name: field.type for field in msgspec.structs.fields(struct)}.get(name) if struct is not None else None
    return " or ".join(f"'{value}'" for value in get_args(inner))
