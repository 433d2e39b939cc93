#!/usr/bin/env python3
"""Elastic batches against fixed ones, in simulation: jobs completed and mean completion time under MASCOTS'20's autoscaler.

All policies share devices by the same dynamic programme and scale jobs up and down; they differ in the batch alone: chosen with the devices
(elastic), or fixed at the largest, the smallest, or a random one of the range. A fixed batch takes as many devices as hold it, as in the
paper; "accumulated" takes it in several rounds on fewer, as our workers do. Jobs, tables and loads are in elastic_workload.py.

Every interval the autoscaler admits who has arrived, first come first served. Whoever then has other devices or another batch than before,
or starts, stands still for the restart. Without drops who does not fit waits; after the last arrival the cluster runs until nobody is left,
and the mean completion time is over all jobs. With drops who does not fit is rejected, and the mean is over those that ran: a policy that
rejects most is quick with the rest, so compare times without drops. "Completed" counts up to the hour when arrivals end. As in the paper a
restart costs nothing in the programme ("elastic"); "elastic, charged" counts it.

The published figures, about 2 x as many jobs completed and up to about 10 x shorter completion, are those of an unpublished simulator with
measured tables: expect the direction and the order of magnitude here, no more. A sample counts as one whatever the batch, as in the paper;
--noise-scale counts progress instead (Pollux's efficiency at this gradient noise scale, in samples), for all policies alike.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

import msgspec
from elastic_workload import LARGEST, LOADS, PER_DEVICE, SMALLEST, Job, Setting, workload
from rich.console import Console
from rich.progress import track

from commensald.allocate.autoscaler import Rules, Share, State, step
from commensald.decision import Demand

FIXED = ("fixed largest", "fixed random", "fixed smallest", "accumulated largest", "accumulated random")
POLICIES = ("elastic", "elastic, charged", *FIXED)
PUBLISHED = {"completed": 2.0, "minutes": 10.0}


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the jobs; ``minutes`` from arrival to completion, ``restarts`` without first starts."""

    jobs: int
    completed: int
    dropped: int
    minutes: float
    restarts: int


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One policy in one setting: medians over the seeds, and how much better elastic is, seed by seed."""

    setting: Setting
    policy: str
    outcomes: tuple[Outcome, ...]
    completed: float
    dropped: float
    minutes: float
    completed_ratio: float
    minutes_ratio: float


def batches(policy: str, job: Job) -> tuple[int, int]:
    """The range of batches that ``policy`` leaves ``job``."""
    size = {"largest": LARGEST, "random": job.random_batch, "smallest": SMALLEST}.get(policy.split()[-1])
    return (SMALLEST, LARGEST) if size is None else (size, size)


class Cluster:
    """Jobs and what is left of each; advances from one interval to the next."""

    def __init__(self, jobs: Iterable[Job], policy: str, setting: Setting) -> None:
        self._setting = setting
        self._rules = Rules(interval_seconds=setting.interval_seconds, drop=setting.drop, charged=policy == "elastic, charged")
        self._jobs = {each.name: each for each in jobs}
        accumulate = policy.startswith("accumulated")
        self._demands = {each.name: each.demand(batches(policy, each), setting, accumulate=accumulate) for each in self._jobs.values()}
        self._left = {each.name: each.work for each in self._jobs.values()}
        self._state, self._just_finished = State(), set[str]()
        self._coming = list(reversed(self._jobs))
        self.finished: dict[str, float] = {}
        self.dropped, self.restarts = 0, 0

    def run(self) -> None:
        """Until every job has finished or was dropped."""
        now = 0.0
        while self._coming or self._state.running or self._state.waiting:
            self._interval(now)
            now += self._setting.interval_seconds

    def _interval(self, now: float) -> None:
        arrived = []
        while self._coming and self._jobs[self._coming[-1]].arrival <= now:
            arrived.append(self._coming.pop())
        running = self._state.running
        self._state, decided = step(
            now, self._state, arrived, self._just_finished, demands=self._demands, nodes=self._setting.devices, rules=self._rules
        )
        self.dropped += len(decided.rejected)
        self.restarts += len(decided.changed.keys() & running.keys())
        self._just_finished = {
            name for name, share in self._state.running.items() if self._train(name, share, now, restarted=name in decided.changed)
        }

    def _train(self, name: str, share: Share, now: float, *, restarted: bool) -> bool:
        """One interval of one job; whether it finishes in it."""
        rate, begins = progress(self._demands[name], share), self._setting.restart_seconds if restarted else 0.0
        seconds = begins + self._left[name] / rate if rate else math.inf
        self._left[name] -= rate * max(self._setting.interval_seconds - begins, 0.0)
        if seconds <= self._setting.interval_seconds:
            self.finished[name] = now + seconds
        return name in self.finished

    def outcome(self) -> Outcome:
        """After run()."""
        taken = [end - self._jobs[name].arrival for name, end in self.finished.items()]
        return Outcome(
            jobs=len(self._jobs),
            completed=sum(end <= self._setting.hours * 3600 for end in self.finished.values()),
            dropped=self.dropped,
            minutes=statistics.fmean(taken) / 60,
            restarts=self.restarts,
        )


def progress(demand: Demand, share: Share) -> float:
    """Samples per second, or what they are worth."""
    if not share.nodes or share.batch is None or demand.elastic is None:
        return 0.0
    return float(demand.elastic.progress(share.nodes, share.batch))  # type: ignore[arg-type]


def simulate(setting: Setting, policy: str, seed: int) -> Outcome:
    """One run."""
    cluster = Cluster(workload(setting.devices, LOADS[setting.load], setting.hours, seed), policy, setting)
    cluster.run()
    return cluster.outcome()


def compare(setting: Setting, seeds: int) -> Iterator[Row]:
    """All policies on the same jobs."""
    elastic: tuple[Outcome, ...] = ()
    for policy in POLICIES:
        outcomes = tuple(simulate(setting, policy, seed) for seed in range(seeds))
        elastic = elastic or outcomes
        yield Row(
            setting=setting,
            policy=policy,
            outcomes=outcomes,
            completed=statistics.median(each.completed for each in outcomes),
            dropped=statistics.median(each.dropped for each in outcomes),
            minutes=statistics.median(each.minutes for each in outcomes),
            completed_ratio=statistics.median(
                ours.completed / max(each.completed, 1) for ours, each in zip(elastic, outcomes, strict=True)
            ),
            minutes_ratio=statistics.median(each.minutes / ours.minutes for ours, each in zip(elastic, outcomes, strict=True)),
        )


def table(rows: list[Row]) -> str:
    """One line a policy and setting; the last two columns say how much better elastic is."""
    heads = f"{'devices':>7} {'load':8} {'mode':7} {'policy':19} {'jobs':>5} {'completed':>9} {'dropped':>7} {'minutes':>8}"
    lines = [f"{heads}   elastic: jobs, time"]
    for row in rows:
        setting, mode = row.setting, "drop" if row.setting.drop else "no drop"
        lines.append(
            f"{setting.devices:>7} {setting.load:8} {mode:7} {row.policy:19} {row.outcomes[0].jobs:>5} {row.completed:>9.0f}"
            f" {row.dropped:>7.0f} {row.minutes:>8.1f}   {row.completed_ratio:>12.2f} x {row.minutes_ratio:>5.2f} x"
        )
    return "\n".join(lines)


def verdict(rows: list[Row]) -> str:
    """Where the published figures are reached, against each fixed batch."""
    return "\n".join(_verdict(rows, policy, figure) for policy, figure in product(FIXED, PUBLISHED))


def _verdict(rows: list[Row], policy: str, figure: str) -> str:
    target, what = PUBLISHED[figure], {"completed": "jobs completed", "minutes": "completion time"}[figure]
    ratios = {_place(row.setting): getattr(row, f"{figure}_ratio") for row in rows if row.policy == policy}
    reached = [f"{place} ({ratio:.1f} x)" for place, ratio in ratios.items() if ratio >= target]
    best = max(ratios, key=lambda place: ratios[place])
    found = f"reached at {', '.join(reached)}" if reached else f"not reached; at most {ratios[best]:.2f} x, at {best}"
    return f"{target:g} x {what} against {policy}: {found}"


def _place(setting: Setting) -> str:
    return f"{setting.devices} {setting.load} {'drop' if setting.drop else 'no drop'}"


def plot(rows: list[Row], path: Path) -> None:
    """Elastic over each fixed batch, jobs and time, by setting."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(11, 7), layout="constrained")
    titles = {"completed": "jobs completed, times as many", "minutes": "completion, times shorter"}
    for axes, (figure, title) in zip(picture.subplots(2, 1), titles.items(), strict=True):
        places = list(dict.fromkeys(_place(row.setting) for row in rows))
        for shift, policy in enumerate(FIXED):
            ratios = [getattr(row, f"{figure}_ratio") for row in rows if row.policy == policy]
            axes.bar([index + (shift - 2) * 0.17 for index in range(len(places))], ratios, 0.16, label=policy)
        axes.axhline(PUBLISHED[figure], color="black", linestyle="--", linewidth=1, label="published: up to")
        axes.axhline(1.0, color="grey", linewidth=1)
        axes.set_yscale("log")
        axes.set_yticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
        axes.set_yticks([], minor=True)
        axes.set_xticks(range(len(places)), [place.replace(" ", "\n", 2) for place in places], fontsize=8)
        axes.set_ylabel(title)
    handles, labels = axes.get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside upper center", ncols=3, title="elastic batches against")
    picture.savefig(path)


def settings(options: argparse.Namespace) -> list[Setting]:
    """All that were asked for."""
    return [
        Setting(
            devices=devices,
            load=load,
            drop=drop,
            hours=options.hours,
            interval_seconds=60 * options.interval_minutes,
            restart_seconds=options.restart_seconds,
            noise_scale=options.noise_scale,
        )
        for devices, drop, load in product(options.devices, (False, True), options.loads)
    ]


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, nargs="+", default=[40, 400])
    parser.add_argument("--loads", nargs="+", choices=LOADS, default=list(LOADS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--hours", type=float, default=8.0, help="for how long jobs arrive")
    parser.add_argument("--interval-minutes", type=float, default=10.0)
    parser.add_argument("--restart-seconds", type=float, default=30.0, help="checkpoint, halt, restart; also at the start of a job")
    parser.add_argument("--noise-scale", type=float, help="count progress instead of samples, at this gradient noise scale (samples)")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    parser.add_argument("--plot", type=Path, help="also draw the ratios into this file")
    options = parser.parse_args()
    if min(options.devices) * PER_DEVICE < LARGEST:
        parser.error(f"--devices: the largest batch needs {LARGEST // PER_DEVICE}")
    if not 0 <= options.restart_seconds < 60 * options.interval_minutes:
        parser.error("--restart-seconds: expected less than an interval")
    shown = track(settings(options), "settings", console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True)
    rows = [row for setting in shown for row in compare(setting, options.seeds)]
    print(table(rows))
    print(verdict(rows))
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(rows)))
    if options.plot:
        plot(rows, options.plot)


if __name__ == "__main__":
    main()
