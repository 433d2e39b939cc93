#!/usr/bin/env python3
"""Our ring against MPI_Allreduce and gloo, on this machine: the time of one float32 sum over the members.

All members share this machine and its cores, so compare rows, do not read the times as a cluster's. The methods take turns in every round,
so that other load meets all of them alike; a time is that of the slowest member, and the table shows the median of the rounds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "ring"))
from wiring import Wiring

from commensal.ring.client import Sidecar
from commensal.ring.commands import Done

MIB_WORDS = 1 << 18
NEVER_WORDS = 1 << 62
METHODS = {"ring": ("mpi", 0), "allreduce": ("mpi", NEVER_WORDS), "gloo": ("gloo", None)}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One method at one size; ``seconds`` by round."""

    method: str
    members: int
    size_mib: int
    seconds: tuple[float, ...]
    seconds_median: float


def time_one(wiring: Wiring, tag: int, words: int) -> float:
    """Seconds of the slowest member for one sum."""
    for memory in wiring.memories:
        memory.floats()[:words].fill_(1.0)
    wiring.reduce(tag, 0, words)
    return max(event.seconds for events in wiring.events for event in events if isinstance(event, Done) and event.tag == tag)


def measure(members: int, sizes_mib: list[int], rounds: int, address: str) -> Iterator[Row]:
    """All rows for one number of members; the first round warms up and is not counted."""
    cores = len(os.sched_getaffinity(0))
    with ExitStack() as stack:
        wirings = {}
        for method, (transport, crossover) in METHODS.items():
            sidecars = [Sidecar(transport, address, oversubscribed=members > cores) for _ in range(members)]
            wirings[method] = stack.enter_context(Wiring(sidecars, max(sizes_mib) * MIB_WORDS))
            wirings[method].form(address, crossover)
        for size in sizes_mib:
            taken: dict[str, list[float]] = {method: [] for method in METHODS}
            for number in range(rounds + 1):
                for method, wiring in wirings.items():
                    taken[method].append(time_one(wiring, size * 1000 + number, size * MIB_WORDS))
            for method, seconds in taken.items():
                counted = tuple(seconds[1:])
                yield Row(method=method, members=members, size_mib=size, seconds=counted, seconds_median=statistics.median(counted))


def table(rows: list[Row]) -> str:
    """Milliseconds by members and size, one column a method."""
    lines = [f"{'members':>7} {'MiB':>5} " + " ".join(f"{method:>10}" for method in METHODS) + "   (ms, median)"]
    for members, size in dict.fromkeys((row.members, row.size_mib) for row in rows):
        cells = {row.method: 1e3 * row.seconds_median for row in rows if (row.members, row.size_mib) == (members, size)}
        lines.append(f"{members:>7} {size:>5} " + " ".join(f"{cells[method]:>10.2f}" for method in METHODS))
    return "\n".join(lines)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--sizes-mib", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--address", default="127.0.0.1", help="whose interface to use; must be this machine's own")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    options = parser.parse_args()
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    rows = [row for members in options.members for row in measure(members, options.sizes_mib, options.rounds, options.address)]
    print(f"{cores} cores, load {load:.1f} before and {os.getloadavg()[0]:.1f} after; members above {cores} share cores")
    print(table(rows))
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode({"cores": cores, "load": load, "rows": rows})))


if __name__ == "__main__":
    main()
