"""PBS's text: ``qstat -f``, ``pbs_rstat -F`` and ``qmgr -c "list sched"``. Attributes are ``name = value`` lines below a heading.

qstat breaks lines near column 78 anywhere and goes on behind a tab. Before it came to mark them (``^J``) it printed line breaks within a
value as they are; such lines belong to the attribute before them. The first of several equal attributes counts, see ``answers.py``.
"""

from __future__ import annotations

import re

from commensald.schedulers.pbs.attributes import PILOT, says_enough, wanted
from commensald.schedulers.pbs.names import JOB
from commensald.schedulers.pbs.records import Part, Reading, Record, UnreadableError, cut, together

_JOB = re.compile(rf"^Job Id: ({JOB})$", re.ASCII | re.MULTILINE)
_RESERVATION = re.compile(r"^Resv ID: (\S+)$", re.MULTILINE)
_ATTRIBUTE = re.compile(r"( {4})?([A-Za-z][\w.-]*) = ?(.*)", re.ASCII)
_PILOT = re.compile(rf"(?:^|,){PILOT}=([0-9A-Za-z-]+)(?=,|$)")


def jobs(text: str) -> Reading:
    """``qstat -f [-t]``; no text is an answer too. Raises UnreadableError where it is something else.

    Text that was cut between two jobs looks whole; what the command's exit code says must be looked at first.
    """
    parts = [_job(name, part) for name, part in _parts(_JOB, text)]
    whole = not parts or text.endswith("\n\n")
    if not whole:
        parts[-1] = Part(parts[-1].name, None)
    return together(parts, whole)


def reservations(text: str) -> dict[str, Record]:
    """``pbs_rstat -F``, by id; no text is an answer too. Raises UnreadableError: one that cannot be read might hold any node."""
    if text.strip() and not text.endswith("\n\n"):
        raise UnreadableError("reservations that were cut short", text[-300:])
    return {name: attributes(part, indented=False) for name, part in _parts(_RESERVATION, text)}


def attributes(text: str, *, indented: bool = True) -> Record:
    """The attributes in ``text``; those of qstat and qmgr stand four columns in."""
    found: dict[str, str] = {}
    key = ""
    for line in text.replace("\n\t", "").split("\n"):
        match = _ATTRIBUTE.fullmatch(line)
        if match is not None and bool(match[1]) == indented:
            key = match[2] if match[2] not in found else ""
            value = match[3]
        else:
            value = f"\n{line}"
        if key:
            found[key] = found.get(key, "") + value
    return {key: value.rstrip() for key, value in found.items()}


def _parts(heading: re.Pattern[str], text: str) -> list[tuple[str, str]]:
    parts = cut(text, heading)
    if text.strip() and not parts:
        raise UnreadableError("not the text of PBS", text[:300])
    return parts


def _job(name: str, text: str) -> Part:
    record = dict(attributes(text))
    pilot = _PILOT.search(record.get("Variable_List", ""))
    if pilot is not None:
        record[f"Variable_List.{PILOT}"] = pilot[1]
    kept = wanted(record)
    return Part(name, kept if says_enough(kept) else None)
