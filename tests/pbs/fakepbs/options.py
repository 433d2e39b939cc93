"""What ``qsub`` is asked (qsub(1B)): options, #PBS directives, resources. Pure. What the fake does not know it refuses by name."""

from __future__ import annotations

import getopt
import shlex
from collections.abc import Mapping, Sequence

import msgspec

from fakepbs.errors import ILLEGAL, NO_MINIMUM, PbsError

OPTIONS = "a:A:c:C:e:fhj:J:k:l:m:M:N:o:p:P:q:r:R:S:u:v:VW:z"
DEFAULT_NCPUS = 1


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """``count`` nodes with so many cpus each, on ``host`` if it is named."""

    count: int
    ncpus: int
    host: str | None = None


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One ``qsub``. Durations in seconds; ``shrink`` is (min_walltime, max_walltime); ``array`` (first, last)."""

    name: str
    queue: str | None
    chunks: tuple[Chunk, ...]
    select: str
    place: str
    walltime: float | None
    shrink: tuple[float, float | None] | None
    rerunable: bool
    hold: bool
    output: str | None
    error: str | None
    join: str
    keep: str
    variables: dict[str, str]
    project: str
    account: str | None
    array: tuple[int, int] | None
    mail: str
    priority: int
    checkpoint: str
    shell: str
    argv: str

    @property
    def node_count(self) -> int:
        """How many nodes it takes."""
        return sum(chunk.count for chunk in self.chunks)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts it names."""
        return tuple(chunk.host for chunk in self.chunks if chunk.host is not None)


def operands(argv: Sequence[str]) -> list[str]:
    """The script and its arguments; none when the script comes on standard input. Raises PbsError."""
    return _getopt(argv)[1]


def read(argv: Sequence[str], script: str, environment: Mapping[str, str]) -> Asked:
    """Directives in the script first, the command line over them. Raises PbsError."""
    flags, operands = _getopt(argv)
    given: dict[str, str] = {}
    resources: dict[str, str] = {}
    variables: dict[str, str] = {}
    for flag, value in [*_directives(script), *flags]:
        if flag == "-l":
            resources |= _pairs(value)
        elif flag == "-v":
            variables |= _variables(value, environment)
        elif flag == "-V":
            variables |= environment
        else:
            given[flag] = value
    _refuse(given)
    chunks, select, place = _placement(resources)
    return Asked(
        name=given.get("-N") or (operands[0].rpartition("/")[2][:15] if operands else "STDIN"),
        queue=given.get("-q"),
        chunks=chunks,
        select=select,
        place=place,
        walltime=seconds(resources["walltime"]) if "walltime" in resources else None,
        shrink=_shrink(resources),
        rerunable=given.get("-r", "y") == "y",
        hold="-h" in given,
        output=given.get("-o"),
        error=given.get("-e"),
        join=given.get("-j", "n"),
        keep=given.get("-k", "n"),
        variables=variables,
        project=given.get("-P", "_pbs_project_default"),
        account=given.get("-A"),
        array=_array(given["-J"]) if "-J" in given else None,
        mail=given.get("-m", "a"),
        priority=int(given.get("-p", "0")),
        checkpoint=given.get("-c", "u"),
        shell=given.get("-S", "/bin/bash"),
        argv=" ".join(argv),
    )


def seconds(text: str) -> float:
    """``HH:MM:SS``, ``MM:SS`` or seconds. Raises PbsError."""
    try:
        parts = [int(part) for part in text.split(":")]
    except ValueError:
        raise PbsError(ILLEGAL, "Resource_List.walltime") from None
    return float(sum(part * 60**power for power, part in enumerate(reversed(parts))))


def clock(duration: float) -> str:
    """``HH:MM:SS``, as PBS shows it."""
    whole = int(duration)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"


def _getopt(argv: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    try:
        return getopt.getopt(list(argv), OPTIONS)
    except getopt.GetoptError as error:
        raise PbsError((2, "{}"), f"{error}\nusage: qsub [-a date_time] [-A account_string] ...") from error


def _directives(script: str) -> list[tuple[str, str]]:
    lines = script.splitlines()
    head = [line for line in lines[:1] if line.startswith("#!")]
    found: list[tuple[str, str]] = []
    for line in lines[len(head) :]:
        if line.startswith("#PBS"):
            found += _getopt(shlex.split(line.removeprefix("#PBS")))[0]
        elif line.strip() and not line.startswith("#"):
            break
    return found


def _refuse(given: Mapping[str, str]) -> None:
    unknown = {"-a", "-C", "-R", "-u"} & given.keys()
    if unknown:
        raise PbsError((2, "the fake does not know {}"), ", ".join(sorted(unknown)))
    for key in _pairs(given.get("-W", "")):
        if key not in ("umask", "sandbox", "group_list", "run_count", "Output_Path"):
            raise PbsError((2, "the fake does not know -W {}"), key)


def _pairs(text: str) -> dict[str, str]:
    """``a=b,c=d``; a part without ``=`` belongs to the value before it."""
    found: dict[str, str] = {}
    last = ""
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if equals:
            last = name.strip()
            found[last] = value
        elif last:
            found[last] += f",{part}"
        else:
            raise PbsError(ILLEGAL, f"Resource_List.{part}")
    return found


def _variables(text: str, environment: Mapping[str, str]) -> dict[str, str]:
    """``-v``: values may be in quotes, a name alone takes its value from the environment."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = ",", True, ""
    pairs = [part.partition("=") for part in lexer]
    return {name: value if equals else environment[name] for name, equals, value in pairs if equals or name in environment}


def _placement(resources: Mapping[str, str]) -> tuple[tuple[Chunk, ...], str, str]:
    """(chunks, select, place). Without a select statement, one chunk of ``ncpus``, packed."""
    if "select" not in resources:
        ncpus = int(resources.get("ncpus", DEFAULT_NCPUS))
        return (Chunk(count=1, ncpus=ncpus),), f"1:ncpus={ncpus}", resources.get("place", "pack")
    chunks = tuple(_chunk(part) for part in resources["select"].split("+"))
    return chunks, resources["select"], resources.get("place", "free")


def _chunk(text: str) -> Chunk:
    count, *rest = text.split(":")
    if not count.isdigit():
        count, rest = "1", [count, *rest]
    wants = dict(part.partition("=")[::2] for part in rest)
    try:
        return Chunk(count=int(count), ncpus=int(wants.get("ncpus", DEFAULT_NCPUS)), host=wants.get("host") or wants.get("vnode"))
    except ValueError:
        raise PbsError(ILLEGAL, "Resource_List.select") from None


def _shrink(resources: Mapping[str, str]) -> tuple[float, float | None] | None:
    most = resources.get("max_walltime")
    if "min_walltime" not in resources:
        if most is not None:
            raise PbsError(NO_MINIMUM)
        return None
    return seconds(resources["min_walltime"]), seconds(most) if most is not None else None


def _array(text: str) -> tuple[int, int]:
    first, _, last = text.partition("%")[0].partition("-")
    if not (first.isdigit() and last.isdigit() and int(first) < int(last)):
        raise PbsError(ILLEGAL, "array_indices_submitted")
    return int(first), int(last)
