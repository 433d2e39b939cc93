#!/usr/bin/env python3
"""A maintenance reservation on a real Slurm: pilots end before it, the last members save, after it they go on at the same step."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "slurm"))
from installation import Installation, choices, chosen, leave, until

from commensald.demo.history import history
from commensald.demo.record import GenerationMade, read

TRAINING = "digits"
LASTS_SECONDS = 60


class Maintenance(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds are from the reservation's submission. ``closed`` is the last step before it, ``resumed`` the one that was gone on from."""

    members_before: int
    last_pilot_gone_seconds: float
    begins_seconds: float
    first_pilot_back_seconds: float
    closed: int
    resumed: int
    steps_lost: int
    samples_repeated: int


def measure(where: Installation, ahead_seconds: int) -> Maintenance:
    """One reservation of all nodes, ``ahead_seconds`` from now."""
    asked = time.time()
    starts = time.strftime("%FT%T", time.localtime(asked + ahead_seconds))
    when = ("reservationname=maintenance", f"starttime={starts}", f"duration={LASTS_SECONDS // 60}")
    where.administer("scontrol", "create", "reservation", *when, "nodes=ALL", "flags=maint,ignore_jobs", f"users={where.account.user}")
    where.start_daemon()
    where.submit(TRAINING)
    until(lambda: len(where.members()) == len(where.nodes), "all members", 60.0)
    members = len(where.members())
    until(lambda: not where.jobs("-t", "RUNNING,COMPLETING") and time.time() > asked + ahead_seconds - 5.0, "the last pilot to end", 300.0)
    gone = max(event["at"] for event in where.events() if event["kind"] in ("stay.ended", "member.left", "member.lost"))
    until(lambda: time.time() > asked + ahead_seconds + 2.0 and not where.jobs("-t", "RUNNING"), "the reservation to begin", 60.0)
    until(lambda: bool(where.jobs("-t", "RUNNING")), "a pilot to come back", 200.0)
    back = time.time()
    until(lambda: bool(where.members()), "a member to come back", 60.0)
    where.ask("drain")
    entries = read(where.events())
    past = history(TRAINING, entries)
    first = next(entry for entry in entries if isinstance(entry, GenerationMade) and entry.at > asked + ahead_seconds)
    ended = [event["step"] for event in where.events() if event["kind"] == "stay.ended" and event["at"] <= gone]
    resumed = next(event["closed"] for event in where.events() if event["kind"] == "generation" and event["at"] == first.at)
    return Maintenance(
        members_before=members,
        last_pilot_gone_seconds=gone - asked,
        begins_seconds=ahead_seconds,
        first_pilot_back_seconds=back - asked,
        closed=max(ended),
        resumed=resumed,
        steps_lost=past.lost,
        samples_repeated=past.repeated,
    )


def main() -> int:
    """Exit code 1 when a pilot ran into the reservation or a step was lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ahead", type=int, default=180, metavar="SECONDS", help="when it begins (%(default)s)")
    parser.add_argument("--nodes", type=int, default=4)
    choices(parser)
    options = parser.parse_args()
    with chosen("maintenance", options, options.nodes) as where:
        print(where.release)
        found = measure(where, options.ahead)
    for key, value in msgspec.structs.asdict(found).items():
        print(f"{key:<26} {value:.1f}" if isinstance(value, float) else f"{key:<26} {value}")
    leave(where, options.keep)
    late = found.last_pilot_gone_seconds >= found.begins_seconds
    return int(late or found.resumed != found.closed or found.steps_lost + found.samples_repeated > 0)


if __name__ == "__main__":
    sys.exit(main())
