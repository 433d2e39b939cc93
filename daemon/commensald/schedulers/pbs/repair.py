"""What qstat writes and JSON does not know, made JSON again. Pure.

``qstat -F json`` copies values that look like numbers to C's ``strtod`` without quotes (``005``, ``0x1F``, ``inf``; openpbs#1255), and
what users export with whatever is in it: lone backslashes (balsam#324), bare quotes and line breaks (``BASH_FUNC_*``; openpbs#2541).
"""

from __future__ import annotations

import re

_LONE_BACKSLASH = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')
_STRING_OR_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|(?<=[:\[,])(\s*)([^\s",:{}\[\]]+)(?=\s*[,}\]])', re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_MEMBER = re.compile(r'\s*"(?P<key>[^"\\]{1,200})"\s*:\s*(?:(?P<open>\{)|"(?P<text>(?:[^"\\]|\\.)*)"|(?P<word>[^\s",{}\[\]]+))\s*,?\s*')
_CLOSE = re.compile(r"\s*\}\s*,?\s*")


def mended(text: str) -> str:
    """``text`` with its lone backslashes doubled and its bare words in quotes."""
    text = _LONE_BACKSLASH.sub(lambda found: found[0] if found[1] else r"\\", text)
    return _STRING_OR_WORD.sub(_quoted, text)


def _quoted(found: re.Match[str]) -> str:
    word = found[2]
    return found[0] if word is None or word in ("true", "false", "null") or _NUMBER.fullmatch(word) else f'{found[1]}"{word}"'


def members(text: str) -> dict[str, str]:
    """Those members of an object that stand whole on a line of their own, the first of a name; those of an inner object with a dot.

    Values are as they are written: what decides about a job (owner, state, queue, nodes) holds nothing that JSON must escape.
    """
    found: dict[str, str] = {}
    inner = ""
    for line in text.split("\n"):
        member = _MEMBER.fullmatch(line)
        if member is None:
            inner = "" if _CLOSE.fullmatch(line) else inner
        elif member["open"]:
            inner = f"{member['key']}."
        else:
            found.setdefault(inner + member["key"], member["text"] if member["word"] is None else member["word"])
    return found
