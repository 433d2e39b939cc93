#!/usr/bin/env python3
"""What a harvest costs the host: the same primary jobs on a real Slurm, without pilots and with a training in every idle node.

Starts a cluster of its own (scripts/slurm-cluster) as an ordinary user, plays the same script of primary jobs twice, and prints each job's
delay from submission to its first process side by side, the backfill cycle of both, and what became of the training.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "slurm"))
from installation import Installation, choices, chosen, leave, until
from primaries import Backfill, Planned, backfill, play, script
from waits import Wait, waits

from commensald.demo.history import history
from commensald.demo.record import GenerationMade, read

TRAINING = "digits"


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One primary job: seconds from its submission to its first process."""

    nodes: int
    without: float
    beside: float

    @property
    def felt(self) -> float:
        """How much later it began because of the pilots."""
        return self.beside - self.without


class Harvest(msgspec.Struct, frozen=True, kw_only=True):
    """Both runs. ``steps`` are settled ones; ``members_max`` the largest ring."""

    jobs: tuple[Job, ...]
    felt_median: float
    felt_worst: float
    waits: tuple[Wait, ...]
    """Of jobs that preempted pilots: what was Slurm's and what was ours."""
    backfill_without: Backfill
    backfill_beside: Backfill
    pilots: int
    members_max: int
    generations: int
    steps: int
    steps_lost: int
    steps_untold: int
    """Steps that the checkpoints go on from and that nobody lived to report: the log's gaps, not the training's."""
    samples_repeated: int
    left_over: int
    """Jobs of ours in the queue after the drain."""


def measure(where: Installation, seconds: float, seed: int) -> Harvest:
    """Play the script without a daemon, then with one."""
    jobs = script(seconds, len(where.nodes), seed)
    without, backfill_without = _played(where, jobs)
    where.start_daemon()
    where.submit(TRAINING)
    until(lambda: len(where.members()) == len(where.nodes), f"{len(where.nodes)} members", 60.0)
    beside, backfill_beside = _played(where, jobs)
    until(lambda: len(where.members()) == len(where.nodes), "all members to come back", 60.0)
    where.ask("drain")
    time.sleep(1.0)
    return _summary(where, jobs, without, beside, (backfill_without, backfill_beside))


def _played(where: Installation, jobs: list[Planned]) -> tuple[list[float], Backfill]:
    where.administer("sdiag", "--reset")
    delays = play(where, jobs)
    return delays, backfill(where.slurm("sdiag"))


def _summary(
    where: Installation, planned: list[Planned], without: list[float], beside: list[float], cycles: tuple[Backfill, Backfill]
) -> Harvest:
    jobs = tuple(Job(nodes=job.nodes, without=a, beside=b) for job, a, b in zip(planned, without, beside, strict=True))
    events = where.events()
    entries = read(events)
    past = history(TRAINING, entries)
    rings = [entry for entry in entries if isinstance(entry, GenerationMade)]
    return Harvest(
        jobs=jobs,
        felt_median=statistics.median(job.felt for job in jobs),
        felt_worst=max(job.felt for job in jobs),
        waits=tuple(waits(where.controller_log())),
        backfill_without=cycles[0],
        backfill_beside=cycles[1],
        pilots=sum(event["kind"] == "pilot.submitted" for event in events),
        members_max=max((len(ring.members) for ring in rings), default=0),
        generations=len(rings),
        steps=len(past.steps),
        steps_lost=past.lost,
        steps_untold=(past.steps[-1].step if past.steps else 0) - len(past.steps),
        samples_repeated=past.repeated,
        left_over=len(where.jobs()),
    )


def table(found: Harvest) -> str:
    """For people."""
    lines = ["  job nodes  without  beside    felt   (seconds from submission to the first process)"]
    lines += [f"{n:>5} {job.nodes:>5} {job.without:>8.2f} {job.beside:>7.2f} {job.felt:>+7.2f}" for n, job in enumerate(found.jobs, 1)]
    cycles = (f"{each.mean_cycle} us over {each.cycles} cycles" for each in (found.backfill_without, found.backfill_beside))
    return "\n".join(
        [
            *lines,
            f"felt: median {found.felt_median:+.2f} s, worst {found.felt_worst:+.2f} s",
            *_shares(found.waits),
            "backfill's mean cycle: without {}, beside {}".format(*cycles),
            f"training: {found.steps} steps in {found.generations} generations of up to {found.members_max} members, {found.pilots} pilots",
            f"steps lost {found.steps_lost}, not reported {found.steps_untold}, samples repeated {found.samples_repeated}, "
            f"jobs left over {found.left_over}",
        ]
    )


def _shares(found: tuple[Wait, ...]) -> list[str]:
    """Medians over the jobs that preempted pilots."""
    if not found:
        return []
    noticed, leaving, granted = (statistics.median(part) for part in zip(*((w.noticed, w.leaving, w.granted) for w in found), strict=True))
    parts = f"Slurm tells the pilots {noticed:.2f} s, they leave {leaving:.2f} s, it starts the job {granted:.2f} s"
    return [f"of {len(found)} jobs that preempted, medians: {parts}"]


def main() -> int:
    """Exit code 1 when a primary job felt it or something was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=180.0, help="length of the script of primary jobs (%(default)g)")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures here")
    choices(parser)
    options = parser.parse_args()
    with chosen("harvest", options, options.nodes) as where:
        print(where.release)
        found = measure(where, options.seconds, options.seed)
    print(table(found))
    if options.json:
        options.json.write_bytes(msgspec.json.encode(found) + b"\n")
    leave(where, options.keep)
    lost = found.steps_lost + found.samples_repeated + found.left_over
    return int(lost > 0 or found.felt_median > 1.0 or found.felt_worst > 2.0)


if __name__ == "__main__":
    sys.exit(main())
