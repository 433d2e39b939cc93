#!/usr/bin/env python3
"""The exact allocator against HiGHS: over counts, and on FreeTrain's published programme (with the right bound, so that all optima agree).

Trainings of up to 64 nodes, with curves of every shape, stalls, and a present map. The three take turns in every round, so that other load
meets all alike; figures are medians. For exact.py the whole call counts, the quickest of a few in each turn, as milliseconds are easily
interrupted; for HiGHS only its own time, without the building of the model. What once came to its limit is not tried again. With --check
the exit code is 1 where the ratios or times that issue 4 sets are missed.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import msgspec
from rich.console import Console
from rich.progress import track

from commensald.allocate import exact, knapsack, milp
from commensald.cli.tables import print_table
from commensald.decision import Demand

CASES = ((5, 20), (5, 40), (10, 40), (10, 80), (10, 160), (20, 320), (50, 1000), (100, 4000))
LOOK_AHEAD, MOST_NODES = 120.0, 64
CALLS = 7
COUNTS_RATIO, PUBLISHED_RATIO = 10.0, 100.0
MOST_SECONDS = {(50, 1000): 0.030, (100, 4000): 0.100}
METHODS = ("exact", "highs_counts", "highs_published")


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """An instance; ``available`` are the names of its nodes."""

    demands: tuple[Demand, ...]
    available: frozenset[str]

    @property
    def held(self) -> list[int]:
        return [len(each.nodes) for each in self.demands]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What one method found, ``None`` where it came to its limit, and its time."""

    sizes: Sequence[int] | None
    seconds: float


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One size; ``None``: the limit ended it. ``equal_optimum``: to 1e-9, among those that found one."""

    trainings: int
    nodes: int
    exact_seconds: float
    highs_counts_seconds: float | None
    highs_published_seconds: float | None
    equal_optimum: bool


def instance(trainings: int, nodes: int) -> Case:
    """Curves by doublings with a gain of their own each; each node idle or with one training, evenly."""
    chance = Random(trainings * nodes)
    names = [f"n{index:04}" for index in range(nodes)]
    held: list[set[str]] = [set() for _ in range(trainings + 1)]
    for name in names:
        holder = held[chance.randint(0, trainings)]
        holder |= {name} if len(holder) < MOST_NODES else set()
    demands = (_training(chance, index, frozenset(held[index])) for index in range(trainings))
    return Case(demands=tuple(demands), available=frozenset(names))


def _training(chance: Random, index: int, nodes: frozenset[str]) -> Demand:
    rate, curve = chance.uniform(20.0, 200.0), []
    for doubling in range(7):
        curve.append((2**doubling, rate))
        rate *= chance.uniform(1.5, 2.1)
    stall = chance.uniform(1.0, 20.0)
    return Demand(training=f"t{index:03}", owner="me", max_nodes=MOST_NODES, curve=tuple(curve), stall_seconds=stall, nodes=nodes)


def by_exact(case: Case, limit: float) -> Answer:
    """exact.py, its whole call."""
    times = []
    for _ in range(CALLS):
        began = time.perf_counter()
        sizes = exact.counts(case.demands, case.held, len(case.available), LOOK_AHEAD)
        times.append(time.perf_counter() - began)
    return Answer(sizes=sizes, seconds=min(times))


def by_counts(case: Case, limit: float) -> Answer:
    """HiGHS over counts."""
    found = knapsack.solve(case.demands, case.held, len(case.available), LOOK_AHEAD, limit_seconds=limit)
    return Answer(sizes=found.sizes, seconds=found.seconds)


def by_published(case: Case, limit: float) -> Answer:
    """HiGHS on the published programme, from the present map."""
    found = milp.plan(case.demands, case.available, LOOK_AHEAD, charge_warmup=False, limit_seconds=limit)
    sizes = [len(found.nodes[each.training]) for each in case.demands]
    return Answer(sizes=sizes if found.optimal else None, seconds=found.seconds)


SOLVERS: dict[str, Callable[[Case, float], Answer]] = dict(zip(METHODS, (by_exact, by_counts, by_published), strict=True))


def measure(cases: Sequence[tuple[int, int]], rounds: int, limit: float) -> list[Row]:
    """All methods on all cases, in turns."""
    built = {size: instance(*size) for size in cases}
    answers: dict[tuple[tuple[int, int], str], list[Answer]] = {(size, method): [] for size in cases for method in METHODS}
    turns = [(size, method) for _ in range(rounds) for size in cases for method in METHODS]
    for size, method in track(turns, "solving", console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True):
        if all(each.sizes is not None for each in answers[size, method]):
            answers[size, method].append(SOLVERS[method](built[size], limit))
    return [_row(built[size], *size, *(answers[size, method] for method in METHODS)) for size in cases]


def _row(case: Case, trainings: int, nodes: int, *answers: Sequence[Answer]) -> Row:
    exact_seconds, counts_seconds, published_seconds = (_median(each) for each in answers)
    assert exact_seconds is not None
    worths = [_worth(case, each.sizes) for method in answers for each in method if each.sizes is not None]
    return Row(
        trainings=trainings,
        nodes=nodes,
        exact_seconds=exact_seconds,
        highs_counts_seconds=counts_seconds,
        highs_published_seconds=published_seconds,
        equal_optimum=all(math.isclose(each, worths[0], rel_tol=1e-9) for each in worths),
    )


def _median(answers: Sequence[Answer]) -> float | None:
    return statistics.median(each.seconds for each in answers) if all(each.sizes is not None for each in answers) else None


def _worth(case: Case, sizes: Sequence[int]) -> float:
    three = zip(case.demands, case.held, sizes, strict=True)
    return sum(float(exact.value(each, held, size, LOOK_AHEAD)[size]) for each, held, size in three)


def missed(row: Row, limit: float) -> list[str]:
    """What this size misses."""
    size, found = f"{row.trainings} trainings, {row.nodes} nodes", []
    if (row.highs_counts_seconds or limit) < COUNTS_RATIO * row.exact_seconds:
        found.append(f"{size}: less than {COUNTS_RATIO:g} times faster than HiGHS over counts")
    if row.highs_published_seconds is not None and row.highs_published_seconds < PUBLISHED_RATIO * row.exact_seconds:
        found.append(f"{size}: less than {PUBLISHED_RATIO:g} times faster than HiGHS on the published programme")
    if row.exact_seconds > MOST_SECONDS.get((row.trainings, row.nodes), math.inf):
        found.append(f"{size}: {row.exact_seconds * 1e3:.0f} ms")
    return found if row.equal_optimum else [*found, f"{size}: optima differ"]


def show(rows: Sequence[Row], limit: float) -> None:
    """The table."""

    def highs(seconds: float | None, ours: float) -> str:
        return f"> {limit:g} s" if seconds is None else f"{seconds:.3f} s, {seconds / ours:,.0f} x"

    lines = [
        (
            str(row.trainings),
            str(row.nodes),
            f"{row.exact_seconds * 1e3:.2f} ms",
            highs(row.highs_counts_seconds, row.exact_seconds),
            highs(row.highs_published_seconds, row.exact_seconds),
            "yes" if row.equal_optimum else "NO",
        )
        for row in rows
    ]
    print_table(("trainings", "nodes", "exact", "HiGHS, counts", "HiGHS, published", "same optimum"), lines)


def plot(rows: Sequence[Row], limit: float, path: Path) -> None:
    """Time by size; a hollow mark stands where the limit ended it."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(8, 5), layout="constrained")
    axes = picture.subplots()
    sizes = [row.trainings * row.nodes for row in rows]
    for method, label in zip(METHODS, ("exact", "HiGHS, counts", "HiGHS, published programme"), strict=True):
        seconds = [getattr(row, f"{method}_seconds") for row in rows]
        (line,) = axes.plot(sizes, [limit if each is None else each for each in seconds], label=label)
        for size, each in zip(sizes, seconds, strict=True):
            colour = line.get_color()
            axes.plot(size, each or limit, marker="o", color=colour, markerfacecolor="white" if each is None else colour)
    axes.axhline(limit, color="grey", linewidth=1, linestyle="--")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(sizes, [f"{row.trainings}\n{row.nodes}" for row in rows], fontsize=8)
    axes.minorticks_off()
    axes.set_xlabel("trainings, nodes (placed by their product)")
    axes.set_ylabel("seconds for one optimum")
    axes.legend()
    picture.savefig(path, dpi=150)


def size(text: str) -> tuple[int, int]:
    """TRAININGSxNODES."""
    trainings, _, nodes = text.partition("x")
    return int(trainings), int(nodes)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=size, nargs="+", default=list(CASES), metavar="TRAININGSxNODES")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds that HiGHS may take")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    parser.add_argument("--plot", type=Path, help="also draw them into this file")
    parser.add_argument("--check", action="store_true", help="fail where a target is missed")
    asked = parser.parse_args()
    rows = measure(asked.sizes, asked.rounds, asked.limit)
    show(rows, asked.limit)
    failures = [words for row in rows for words in missed(row, asked.limit)]
    for words in failures:
        print(words, file=sys.stderr)
    if asked.json:
        asked.json.write_bytes(msgspec.json.format(msgspec.json.encode(rows)))
    if asked.plot:
        plot(rows, asked.limit, asked.plot)
    return int(asked.check and bool(failures))


if __name__ == "__main__":
    sys.exit(main())
