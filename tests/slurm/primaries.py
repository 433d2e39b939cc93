"""The host's own work: the same script of primary jobs, submitted with and without pilots, and when each of them starts."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import msgspec
from installation import Installation, until

GAP_SECONDS = 9.0
"""From one job to the next: two of them overlap now and then."""


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A job: when it is submitted (seconds from the start), on how many nodes it runs, for how long."""

    at: float
    nodes: int
    seconds: float


def script(seconds: float, nodes: int, seed: int = 1) -> list[Planned]:
    """Jobs of one, two and all nodes for so long, the last of them over by the end; the same for the same seed.

    Slurm looks at whole seconds (23.11 and later): jobs are submitted at any fraction of one, or all would wait equally long.
    """
    dice = random.Random(seed)
    sizes = [size for size in (1, 2, nodes) if size <= nodes]
    times = range(int((seconds - GAP_SECONDS) // GAP_SECONDS))
    return [
        Planned(at=GAP_SECONDS * each + dice.random(), nodes=sizes[each % len(sizes)], seconds=dice.choice((3.0, 5.0, 7.0)))
        for each in times
    ]


def play(where: Installation, jobs: list[Planned]) -> list[float]:
    """Submit each at its time; gives for each the seconds from its submission to the start of its first process."""
    folder = where.folder / f"starts-{time.time_ns()}"
    where.account.run(["mkdir", str(folder)], {})
    began, submitted = time.monotonic(), []
    for number, job in enumerate(jobs):
        time.sleep(max(began + job.at - time.monotonic(), 0.0))
        submitted.append(time.time())
        _submit(where, job, folder / str(number))
    until(lambda: len(list(folder.iterdir())) == len(jobs), "all primary jobs to start", 60.0)
    time.sleep(0.2)
    started = [float((folder / str(number)).read_text()) for number in range(len(jobs))]
    until(lambda: not where.slurm("squeue", "-h", "-p", "primary").strip(), "all primary jobs to end", 60.0)
    return [at - before for at, before in zip(started, submitted, strict=True)]


def _submit(where: Installation, job: Planned, mark: Path) -> None:
    payload = f"date +%s.%N > {mark}; sleep {job.seconds}"
    where.slurm("sbatch", "-p", "primary", "-N", str(job.nodes), "--exclusive", "-t", "1", "-o", "/dev/null", "--wrap", payload)


class Backfill(msgspec.Struct, frozen=True, kw_only=True):
    """What ``sdiag`` says of the backfill passes since it was reset; times in microseconds."""

    cycles: int
    mean_cycle: int | None


def backfill(output: str) -> Backfill:
    """Read ``sdiag``; its first "Mean cycle" is the main scheduler's (sdiag(1))."""
    section = output.partition("Backfilling stats")[2]
    cycles = re.search(r"Total cycles:\s*(\d+)", section)
    mean = re.search(r"Mean cycle:\s*(\d+)", section)
    return Backfill(cycles=int(cycles[1]) if cycles else 0, mean_cycle=int(mean[1]) if mean else None)
