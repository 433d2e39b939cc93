#!/usr/bin/env python3
"""Faults on a real Slurm under a training: a pilot killed by hand, a slurmd and the controller away, the daemon killed at random instants.

After all of them the training has lost no settled step and used no sample twice, no node has two pilots, and a drain empties the queue.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "slurm"))
from installation import Installation, choices, chosen, leave, until

from commensald.demo.history import history
from commensald.demo.record import read

TRAINING = "digits"
AWAY_SECONDS = 20.0


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """``steps_while_away``: settled while the controller was stopped. ``twins``: nodes that ever showed two running pilots."""

    steps: int
    steps_while_away: int
    steps_lost: int
    samples_repeated: int
    twins: int
    left_over: int
    daemon_lives: int


class Scene:
    """The installation while faults happen; looks for twins all the time."""

    def __init__(self, where: Installation) -> None:
        self.where, self.twins = where, set[str]()

    def look(self) -> dict[str, str]:
        """Node -> job of the pilots that run."""
        rows = [(node, job) for job, state, node in self.where.jobs() if state == "RUNNING"]
        self.twins |= {node for node, count in Counter(node for node, _ in rows).items() if count > 1}
        return dict(rows)

    def whole(self) -> None:
        """Wait until every node has a member again."""
        until(
            lambda: set(self.look()) == set(self.where.nodes) and len(self.where.members()) == len(self.where.nodes), "all members", 120.0
        )

    def steps(self) -> int:
        """Settled so far."""
        return self.where.status().trainings[0].settled

    def kill_pilot(self) -> None:
        """``scancel -s KILL`` to one of them."""
        self.where.slurm("scancel", "--signal=KILL", "--full", self.look()["n2"])
        self.whole()

    def kill_slurmd(self) -> None:
        """One node's daemon is away for a while; its pilot is not."""
        self.where.signal_cluster("slurmd.n3", signal.SIGKILL)
        time.sleep(5.0)
        self.where.up()
        self.whole()

    def stop_controller(self) -> int:
        """Settled steps while nobody schedules."""
        self.where.signal_cluster("slurmctld", signal.SIGTERM)
        before = self.steps()
        time.sleep(AWAY_SECONDS)
        settled = self.steps() - before
        self.where.up()
        self.whole()
        return settled

    def kill_daemon(self, times: int, dice: random.Random) -> None:
        """SIGKILL at random instants; a new one each time."""
        for _ in range(times):
            time.sleep(dice.uniform(0.0, 3.0))
            self.where.end_daemon(signal.SIGKILL)
            self.where.start_daemon()
            self.look()
        self.whole()


def measure(where: Installation, kills: int, seed: int) -> Faults:
    """All faults, one after the other."""
    scene = Scene(where)
    where.start_daemon()
    where.submit(TRAINING)
    scene.whole()
    scene.kill_pilot()
    scene.kill_slurmd()
    away = scene.stop_controller()
    scene.kill_daemon(kills, random.Random(seed))
    lives = where.status().incarnation
    where.ask("drain")
    time.sleep(1.0)
    past = history(TRAINING, read(where.events()))
    return Faults(
        steps=len(past.steps),
        steps_while_away=away,
        steps_lost=past.lost,
        samples_repeated=past.repeated,
        twins=len(scene.twins),
        left_over=len(where.jobs()),
        daemon_lives=lives,
    )


def main() -> int:
    """Exit code 1 when something was lost, doubled or left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10, help="of the daemon (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    choices(parser)
    options = parser.parse_args()
    with chosen("faults", options) as where:
        print(where.release)
        found = measure(where, options.kills, options.seed)
    for key, value in msgspec.structs.asdict(found).items():
        print(f"{key:<18} {value}")
    leave(where, options.keep)
    return int(found.steps_lost + found.samples_repeated + found.twins + found.left_over > 0 or not found.steps_while_away)


if __name__ == "__main__":
    sys.exit(main())
