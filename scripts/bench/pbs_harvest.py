#!/usr/bin/env python3
"""What a harvest costs the host under PBS: primary jobs come and go on a cluster whose idle nodes train.

Plays on the PBS that is on PATH, as the user who runs this; --fake plays on the tests' own instead. A real server's address is where PBS's
commands look for it (PBS_CONF_FILE, PBS_SERVER). PBS_TEST_PRIMARY and PBS_TEST_SCAVENGER name an express queue and one below
preempt_queue_prio (primaryq, scavq), PBS_TEST_FOLDER a folder that all nodes see; job_history_enable must be set. Nobody else should use
the nodes meanwhile.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "slurm"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "pbs"))
from pbs_commands import chosen, until
from pbs_fake import Fake
from pbs_house import PILOT, PRIMARY, PbsHouse, scratch
from primaries import Planned, script

from commensald.demo.history import history
from commensald.demo.record import GenerationMade, read

TRAINING = "digits"
KILLED = 256 + signal.SIGKILL
"""Exit_status of a job that did not leave by itself."""


class Harvest(msgspec.Struct, frozen=True, kw_only=True):
    """``delays``: seconds from each primary job's submission to its first process. ``steps`` are settled ones."""

    nodes: int
    kill_delay: float
    delays: tuple[float, ...]
    delay_median: float
    delay_worst: float
    pilots: int
    requeued: int
    """Pilots that PBS preempted and put back into the queue."""
    killed: int
    """Pilots that had to be killed."""
    members_max: int
    generations: int
    steps: int
    steps_lost: int
    samples_repeated: int
    left_over: int
    """Jobs of ours in the queue after the drain."""

    @property
    def sound(self) -> bool:
        """Nothing was lost, and every pilot left by itself."""
        wrong = self.steps_lost + self.samples_repeated + self.left_over + self.killed
        return wrong == 0 and self.members_max == self.nodes and self.requeued > 0 and self.delay_worst < self.kill_delay


def measure(house: PbsHouse, seconds: float, seed: int) -> Harvest:
    """Fill the cluster with a training, play the primary jobs, drain."""
    pbs, table = house.pbs, house.pbs.nodes()
    before = set(pbs.past_ids(PILOT))
    house.begin()
    house.give(TRAINING, len(table))
    house.filled(len(table))
    cpus = min(node["resources_available"]["ncpus"] for node in table.values())
    delays = play(house, script(seconds, len(table), seed), cpus)
    house.filled(len(table))
    house.run("drain")
    time.sleep(1.0)
    pilots = [pbs.past(job) for job in pbs.past_ids(PILOT) if job not in before]
    return _summary(house, delays, len(table), pilots)


def play(house: PbsHouse, jobs: list[Planned], cpus: int) -> list[float]:
    """Submit each at its time; gives for each the seconds from its submission to its first process."""
    began, submitted = time.monotonic(), []
    marks = [house.folder / f"primary-{number}" for number in range(len(jobs))]
    for job, mark in zip(jobs, marks, strict=True):
        time.sleep(max(began + job.at - time.monotonic(), 0.0))
        submitted.append(time.time())
        where = ("-l", f"select={job.nodes}:ncpus={cpus}", "-l", "place=scatter:excl", "-l", "walltime=00:01:00")
        body = f"date +%s.%N > {mark}.part; mv {mark}.part {mark}; sleep {job.seconds}"
        house.pbs.qsub(body, "-q", house.pbs.primary, *where, "-N", PRIMARY, "-o", "/dev/null", "-j", "oe")
    until(lambda: all(mark.exists() for mark in marks), "all primary jobs to start", 60.0)
    until(lambda: not house.pbs.ours(PRIMARY), "all primary jobs to end", 60.0)
    return [float(mark.read_text()) - at for mark, at in zip(marks, submitted, strict=True)]


def _summary(house: PbsHouse, delays: list[float], nodes: int, pilots: list[dict[str, Any]]) -> Harvest:
    events = (house.folder / "events").read_text().splitlines()
    entries = read([msgspec.json.decode(line) for line in events])
    past = history(TRAINING, entries)
    rings = [entry for entry in entries if isinstance(entry, GenerationMade)]
    return Harvest(
        nodes=nodes,
        kill_delay=house.pbs.kill_delay(),
        delays=tuple(delays),
        delay_median=statistics.median(delays),
        delay_worst=max(delays),
        pilots=len(house.events("pilot.submitted")),
        requeued=sum("run_count" in each and "exec_host" not in each for each in pilots),
        killed=sum(each.get("Exit_status") == KILLED for each in pilots),
        members_max=max((len(ring.members) for ring in rings), default=0),
        generations=len(rings),
        steps=len(past.steps),
        steps_lost=past.lost,
        samples_repeated=past.repeated,
        left_over=len(house.pbs.ours(PILOT)),
    )


def table(found: Harvest) -> str:
    """For people."""
    delays = " ".join(f"{delay:.2f}" for delay in found.delays)
    return "\n".join(
        [
            f"primary jobs' delays, seconds: {delays}",
            f"median {found.delay_median:.2f}, worst {found.delay_worst:.2f}, kill_delay {found.kill_delay:g}",
            f"{found.pilots} pilots, {found.requeued} of them requeued by PBS, {found.killed} killed",
            f"training: {found.steps} steps in {found.generations} generations of up to {found.members_max} members on {found.nodes} nodes",
            f"steps lost {found.steps_lost}, samples repeated {found.samples_repeated}, jobs left over {found.left_over}",
        ]
    )


@contextmanager
def fake() -> Iterator[str]:
    """The fake's commands at the front of PATH; gives the address for the daemon."""
    path = os.environ["PATH"]
    with tempfile.TemporaryDirectory(prefix="commensal-pbs-") as folder, Fake(Path(folder)):
        os.environ["PATH"] = f"{folder}/bin:{path}"
        try:
            yield "127.0.0.1"
        finally:
            os.environ["PATH"] = path


@contextmanager
def real() -> Iterator[str | None]:
    """Nothing to start; members come to this host's own address, or to PBS_TEST_BIND."""
    yield os.environ.get("PBS_TEST_BIND")


def main() -> int:
    """Exit code 1 when a primary job felt it or something was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=180.0, help="length of the script of primary jobs (%(default)g)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fake", action="store_true", help="play on the tests' fake of four nodes")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    with fake() if options.fake else real() as bind, PbsHouse(scratch(), chosen(), bind) as house:
        found = measure(house, options.seconds, options.seed)
    print(table(found))
    if options.json:
        options.json.write_bytes(msgspec.json.encode(found) + b"\n")
    return int(not found.sound or found.delay_median > 1.0)


if __name__ == "__main__":
    sys.exit(main())
