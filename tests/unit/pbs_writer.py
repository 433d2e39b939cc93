"""``qstat -f`` written as OpenPBS's qstat.c writes it, as JSON and as text: long lines broken anywhere, values as a user left them."""

from __future__ import annotations

import json
from collections.abc import Mapping

Attributes = Mapping[str, "str | int | Mapping[str, str]"]
HEAD = '{\n\t"timestamp":\t1796000835,\n\t"pbs_version":\t"23.06.06",\n\t"pbs_server":\t"srv",\n\t"Jobs":\t{\n'
LIMIT = 78


class Raw(str):
    """What qstat copies without quotes, or with quotes that it does not escape: what is written is what stands here."""

    __slots__ = ()


def as_json(jobs: Mapping[str, Attributes]) -> str:
    """Tabs, one member a line; a number is not quoted, as whatever strtod(3) takes."""
    return HEAD + ",\n".join(f'\t\t"{name}":\t{_object(job, 3)}' for name, job in jobs.items()) + "\n\t}\n}\n"


def _object(table: Attributes, depth: int) -> str:
    inner = ",\n".join(f"{chr(9) * depth}{json.dumps(key)}:\t{_value(value, depth)}" for key, value in table.items())
    return f"{{\n{inner}\n{chr(9) * (depth - 1)}}}"


def _value(value: str | int | Mapping[str, str], depth: int) -> str:
    if isinstance(value, Mapping):
        return _object(value, depth + 1)
    return str(value) if isinstance(value, Raw | int) else json.dumps(value, ensure_ascii=False)


def as_text(jobs: Mapping[str, Attributes]) -> str:
    """Attributes four columns in, an empty line after each job."""
    return "".join(f"Job Id: {name}\n{''.join(_lines(job))}\n" for name, job in jobs.items())


def _lines(job: Attributes) -> list[str]:
    lines: list[str] = []
    for key, value in job.items():
        if key == "Variable_List" and isinstance(value, Mapping):
            lines.append(_wrapped(key, ",".join(f"{name}={text}" for name, text in value.items())))
        elif isinstance(value, Mapping):
            lines += [_wrapped(f"{key}.{name}", text) for name, text in value.items()]
        else:
            lines.append(_wrapped(key, str(value)))
    return lines


def _wrapped(name: str, value: str) -> str:
    """Broken at commas where that helps, else in the middle (prt_attr in qstat.c)."""
    out, start, first = f"    {name} = ", len(name) + 7, True
    parts = [part for part in value.split(",") if part]
    for position, part in enumerate(parts):
        if len(part) + start < LIMIT:
            out, start = out + part, start + len(part)
        else:
            if not first:
                out, start = out + "\n\t", 9
            for letter in part:
                out, start = out + letter, start + 1
                if start > LIMIT:
                    out, start = out + "\n\t", 8
        if position + 1 < len(parts):
            out, first = out + ",", False
    return out + "\n"
