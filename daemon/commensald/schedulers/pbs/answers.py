"""``qstat -F json`` and ``pbsnodes -F json`` read as far as they can be.

A whole answer that is JSON is read at once. What is not is cut at the places where records begin, and each record is read by itself: as
it stands, mended, or line by line; so one user's environment costs nobody else's job. A record of which not even owner and state can be
read is named, and nothing is guessed of it.

PBS writes owner, state, nodes and times of a job before what comes from a user's environment (``Variable_List``), and the first of
several equal keys counts. So of a job that is damaged by its own variables, what decides is still the server's. What a user can do with a
variable that looks like a record is to invent a job; one that names a job which exists as well makes that one's state unknown, which counts
as present.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from commensald.schedulers.pbs.attributes import NAMES, says_enough, wanted
from commensald.schedulers.pbs.names import JOB
from commensald.schedulers.pbs.records import Part, Reading, Record, UnreadableError, cut, together
from commensald.schedulers.pbs.repair import members, mended

_JOB_BEGINS = re.compile(rf'(?<!\\)"({JOB})"\s*:\s*(?=\{{)', re.ASCII)
_ONE_EACH = '"job_state":'
_BETWEEN = re.compile(r'[\s,}]*(?:"Jobs"\s*:\s*\{)?\s*')
_ENDED = re.compile(r"\}\s*\}\s*\}\s*$")
_BEGINS = re.compile(r"^\s*\{", re.MULTILINE)


def jobs(text: str) -> Reading:
    """``qstat -f [-t] -F json``, perhaps with a table before it (openpbs#2675). Raises UnreadableError where there is no JSON at all."""
    text = text[_beginning(text) :]
    try:
        found = _whole(text, "Jobs", _OF_JOBS)
    except (ValueError, RecursionError):
        return _one_by_one(text)
    if text.count(_ONE_EACH) != len(found):  # a variable full of braces can move other jobs to where nobody looks, and still be JSON
        return _one_by_one(text)
    return Reading(records={name: wanted(each) for name, each in found.items()})


def others(text: str, section: str) -> dict[str, Record]:
    """``qstat -Q`` (``Queue``), ``qstat -B`` (``Server``) or ``pbsnodes`` (``nodes``), by name: all of it, or UnreadableError.

    What administrators write is mended, but a node that cannot be read might be anything.
    """
    text = text[_beginning(text) :]
    for mend in (str, mended):
        try:
            return _whole(mend(text), section, _OF_OTHERS)
        except (ValueError, RecursionError):
            continue
    raise UnreadableError(f"{section}: not JSON", text[:300])


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The first of several equal keys (openpbs#2677); objects of one name are one (a repeated ``"Jobs":{``, openpbs#585)."""
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    found = {}
    for key, value in pairs:
        before = found.setdefault(key, value)
        if isinstance(before, dict) and isinstance(value, dict):
            found[key] = {**value, **before}
    return found


def _few(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """As :func:`_pairs`, without what we do not read: half the time, a third of the memory."""
    return _pairs([pair for pair in pairs if pair[0] in NAMES or isinstance(pair[1], dict)])


def _decoder(hook: Callable[[list[tuple[str, object]]], dict[str, object]]) -> json.JSONDecoder:
    """Values stay as they are written."""
    return json.JSONDecoder(object_pairs_hook=hook, parse_int=str, parse_float=str, parse_constant=str, strict=False)


_OF_JOBS, _OF_OTHERS = _decoder(_few), _decoder(_pairs)


def _beginning(text: str) -> int:
    found = _BEGINS.search(text)
    if found is None:
        raise UnreadableError("no JSON", text[:300])
    return found.end() - 1


def _whole(text: str, section: str, decoder: json.JSONDecoder) -> dict[str, Record]:
    """Raises ValueError where it is not JSON, or not JSON of this form."""
    answer, end = decoder.raw_decode(text)
    named = answer.get(section, {})
    if not isinstance(named, dict) or section in named or text[end:].strip() or not all(isinstance(each, dict) for each in named.values()):
        raise ValueError(section)
    return {name: flat(each) for name, each in named.items()}


def flat(found: Mapping[str, object], prefix: str = "") -> Record:
    """The members of inner objects with a dot; lists with commas."""
    record: dict[str, str] = {}
    for key, value in found.items():
        if isinstance(value, dict):
            record |= flat(value, f"{prefix}{key}.")
        else:
            record[prefix + key] = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return record


def _one_by_one(text: str) -> Reading:
    parts = [_part(name, part) for name, part in cut(text, _JOB_BEGINS)]
    whole = bool(parts) and _came_to_its_end(parts[-1], text)
    if parts and not whole and parts[-1].tail is None:
        parts[-1] = Part(parts[-1].name, None, None, True)
    return together(parts, whole)


def _part(name: str, text: str) -> Part:
    for damaged in (False, True):
        attempt = mended(text) if damaged else text
        try:
            found, end = _OF_JOBS.raw_decode(attempt)
        except (ValueError, RecursionError):
            continue
        record, tail = wanted(flat(found)), attempt[end:]
        return Part(name, record if says_enough(record) else None, tail, damaged or not _BETWEEN.fullmatch(tail))
    record = wanted(members(text))
    return Part(name, record if says_enough(record) else None, None, True)


def _came_to_its_end(last: Part, text: str) -> bool:
    return bool(_ENDED.search(text)) if last.tail is None else "}" in last.tail
