#!/usr/bin/env python3
"""Walltime deadlines on a real Slurm: is a complete checkpoint there whenever the last member of a training meets its pilot's limit?

Trainings of one member each, with a state of --state-mib, run in pilots of two minutes, one on each node, until --runs pilots have met
their limit. A run is a miss when the next pilot does not go on from the last step that its training had closed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "slurm"))
from installation import ROOT, choices, chosen, leave

MINUTES = 2.0
SCRIPT = ROOT / "tests" / "slurm" / "scripts" / "wide.py"


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One pilot that met its limit: the last step closed in it, the step that the next one went on from, the last save's seconds."""

    training: str
    closed: int
    resumed: int
    save_seconds: float

    @property
    def missed(self) -> bool:
        """Whether something was lost."""
        return self.resumed < self.closed


def runs(events: Iterable[dict[str, Any]]) -> list[Run]:
    """Read the daemon's events: a stay that ended, and the generation after it."""
    found, ended, save = [], dict[str, int](), dict[str, float]()
    for event in events:
        name = event.get("training", "")
        match event["kind"]:
            case "checkpoint":
                save[name] = event["seconds"]
            case "stay.ended":
                ended[name] = event["step"]
            case "generation" if name in ended:
                closed = ended.pop(name)
                found.append(Run(training=name, closed=closed, resumed=event["closed"] or 0, save_seconds=save.get(name, 0.0)))
    return found


def main() -> int:
    """Exit code 1 at a miss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--state-mib", type=float, default=200.0)
    parser.add_argument("--nodes", type=int, default=3)
    choices(parser)
    options = parser.parse_args()
    give_up = time.monotonic() + (options.runs / options.nodes + 2) * (MINUTES * 60.0 + 40.0)
    with chosen("deadline", options, options.nodes) as where:
        print(where.release)
        where.start_daemon(pilots={"max_minutes": MINUTES, "standing": 0, "minimum_window_seconds": 30.0})
        for number in range(options.nodes):
            where.submit(f"wide{number}", SCRIPT, (f"{options.state_mib:g}",), most=1)
        while len(runs(where.events())) < options.runs and time.monotonic() < give_up:
            time.sleep(1.0)
        where.ask("drain")
        found = runs(where.events())
    for each in found:
        print(f"{each.training}: closed {each.closed}, resumed {each.resumed}, last save {each.save_seconds:.2f} s {'MISS' * each.missed}")
    print(f"{len(found)} runs to the limit with {options.state_mib:g} MiB, {sum(each.missed for each in found)} misses")
    leave(where, options.keep)
    return int(len(found) < options.runs or any(each.missed for each in found))


if __name__ == "__main__":
    sys.exit(main())
