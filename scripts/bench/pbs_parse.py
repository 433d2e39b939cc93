#!/usr/bin/env python3
"""What one look at a large PBS costs the daemon, when some of what ``qstat -F json`` prints is not JSON.

The answer, by default of 10,000 jobs of which 1 % are damaged, is made from this project's own captures of a real server; the damage is of
the kinds that have been reported (research/peers.md, rows 42 to 46), and one half of it cannot be mended. Whole and damaged answers are
read in turn. With --check the exit code is 1 beyond 2 s, or when a job that is not damaged is lost: the limits that issue 5 sets.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "unit"))
from pbs_captures import capture, section

from commensald.cluster import JobState
from commensald.schedulers.pbs import answers
from commensald.schedulers.pbs.jobs import Around, jobs
from commensald.schedulers.pbs.nodes import hosts

MIB = 1 << 20
MOST_SECONDS = 2.0
MENDABLE = ('"foo":\t005,', '"C":\t"C:\\data",', '"BASH_FUNC_module%%":\t"() {  eval "$(modulecmd bash \\$*)"\n}",')
VARIABLES = '"Variable_List":\t{\n'
OWNER = '"Job_Owner":\t"alice@pbs-s"'


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Of ``jobs`` the ``damaged`` ones: those of which all that matters was read all the same, and those that count as present."""

    jobs: int
    damaged: int
    kept_untouched: int
    repaired: int
    unreadable: int
    mebibytes: float
    whole_seconds: float
    damaged_seconds: float


def written(count: int, damaged: frozenset[int]) -> str:
    """So many jobs, half of them running; those that are ``damaged`` cannot be mended in every other case."""
    whole = capture("qstat_tf2.json")
    head, running, pending = whole[: whole.index('"0.pbs-s"')], _record(whole, "3.pbs-s"), _record(whole, "7.pbs-s")
    parts = (_damage(number, each) if number in damaged else each for number, each in enumerate([running, pending] * (count // 2)))
    return head + ",\n\t\t".join(f'"{1000 + number}.pbs-s":\t{part}' for number, part in enumerate(parts)) + "\n\t}\n}\n"


def _record(whole: str, name: str) -> str:
    begin = whole.index("{", whole.index(f'"{name}"'))
    return whole[begin : whole.index("\n\t\t}", begin)] + "\n\t\t}"


def _damage(number: int, record: str) -> str:
    if number // 2 % 2:
        return record.replace(OWNER, OWNER[:-1], 1)
    return record.replace(VARIABLES, VARIABLES + MENDABLE[number % len(MENDABLE)] + "\n", 1)


def look(shown: str, around: Around) -> tuple[float, answers.Reading, int]:
    """Seconds of one reading, and how many jobs come of it whose state is known."""
    began = time.perf_counter()
    reading = answers.jobs(shown)
    found = jobs(reading, around, 1796000884.0)
    return time.perf_counter() - began, reading, sum(each.state is not JobState.UNKNOWN for each in found)


def measure(count: int, share: float, rounds: int) -> Measured:
    """Medians of so many rounds, in each of which both answers are read."""
    damaged = frozenset(random.Random(count).sample(range(count), round(count * share)))
    around = Around(hosts=hosts(section("pbsnodes_a2.json", "nodes")))
    shown = {"whole": written(count, frozenset()), "damaged": written(count, damaged)}
    seconds: dict[str, list[float]] = {name: [] for name in shown}
    for _ in range(rounds):
        for name, text in shown.items():
            took, reading, known = look(text, around)
            seconds[name].append(took)
            assert name == "damaged" or known == count
    untouched = sum(f"{1000 + number}.pbs-s" in reading.records for number in range(count) if number not in damaged)
    return Measured(
        jobs=count,
        damaged=len(damaged),
        kept_untouched=untouched,
        repaired=len(reading.repaired),
        unreadable=len(reading.unreadable),
        mebibytes=len(shown["damaged"]) / MIB,
        whole_seconds=statistics.median(seconds["whole"]),
        damaged_seconds=statistics.median(seconds["damaged"]),
    )


def main() -> int:
    """Prints a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--damaged", type=float, default=0.01, help="share of jobs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true", help="fail beyond the limits")
    asked = parser.parse_args()
    found = measure(asked.jobs, asked.damaged, asked.rounds)
    if asked.json:
        print(json.dumps(msgspec.to_builtins(found)))
    else:
        print(
            f"{found.jobs} jobs, {found.mebibytes:.1f} MiB, {found.damaged} damaged: {found.kept_untouched} untouched ones kept, ", end=""
        )
        print(f"{found.repaired} damaged ones repaired, {found.unreadable} named as unreadable")
        print(f"median of {asked.rounds}: {found.whole_seconds:.2f} s whole, {found.damaged_seconds:.2f} s damaged")
    lost = found.kept_untouched + found.damaged < found.jobs or found.repaired + found.unreadable != found.damaged
    return int(asked.check and (lost or max(found.whole_seconds, found.damaged_seconds) > MOST_SECONDS))


if __name__ == "__main__":
    sys.exit(main())
