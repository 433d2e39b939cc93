"""`commensal windows` against `squeue --start`: on a queue of planned jobs each window closes when Slurm plans to take the node."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from installation import Installation, until

RESOLUTION_SECONDS = 10.0
"""``bf_resolution`` of the cluster."""
LATE_SECONDS = 3.0
"""Slurm plans anew and the daemon looks every second."""
Plan = dict[str, list[float]]


def submit(where: Installation, nodes: int, minutes: int, *options: str) -> None:
    where.slurm("sbatch", "-p", "primary", f"-N{nodes}", "--exclusive", f"-t{minutes}", "-o/dev/null", *options, "--wrap", "sleep 600")


def planned(where: Installation) -> Plan:
    """Starts that Slurm plans, by node, ascending; empty while a pending job of the primary partition has none."""
    where.environment["SLURM_TIME_FORMAT"] = "%s"
    try:
        rows = where.slurm("squeue", "-h", "--start", "-p", "primary", "-t", "PENDING", "-o", "%S|%Y").splitlines()
    finally:
        del where.environment["SLURM_TIME_FORMAT"]
    found: Plan = {node: [] for node in where.nodes}
    for start, nodes in (row.split("|") for row in rows):
        names = where.slurm("scontrol", "show", "hostnames", nodes).split() if nodes.startswith("n") else []
        if not start.isdecimal() or not names:
            return {}
        for name in names:
            found[name].append(float(start))
    return {node: sorted(starts) for node, starts in found.items()}


def shown(where: Installation) -> Iterator[tuple[str, float, float | None]]:
    """(node, when its window opens, when it closes)."""
    now = time.time()
    for row in json.loads(where.ask("windows", "--json")):
        yield row["node"], now + row["opens_seconds"], None if row["closes_seconds"] is None else now + row["closes_seconds"]


def wrong(where: Installation) -> list[str]:
    """Windows that close at another time than the first planned start after they open; Slurm is asked before and after us."""
    before = planned(where)
    windows = list(shown(where))
    after = planned(where)
    if not before or not after:
        return ["Slurm has not planned every job"]
    return [f"{each} where Slurm plans {before}" for each in windows if not _right(*each, before, after)]


def _right(node: str, opens: float, closes: float | None, *plans: Plan) -> bool:
    firsts = [next((start for start in plan[node] if start > opens - RESOLUTION_SECONDS), None) for plan in plans]
    known = [each for each in firsts if each is not None]
    if closes is None:
        return None in firsts
    slack = RESOLUTION_SECONDS + LATE_SECONDS
    return bool(known) and min(known) - slack <= closes <= max(known) + slack


@pytest.mark.parametrize("pilots", [False, True])
def test_each_window_closes_when_slurm_plans_to_start_a_job_there(where: Installation, pilots: bool) -> None:
    submit(where, 1, 2, "-w", "n1")
    submit(where, 1, 4, "-w", "n2")
    submit(where, 3, 3)  # waits for the first of the two
    submit(where, 4, 2)  # for the second, and for the one before
    submit(where, 1, 20)  # after all of them: it would delay the ones before
    where.start_daemon()
    if pilots:
        where.submit("digits")
        until(lambda: len(where.members()) == 2, "pilots on the nodes that Slurm holds for later", 60.0)
    until(lambda: bool(planned(where)), "Slurm to plan the jobs")
    found = [""]

    def settled() -> bool:
        found[:] = wrong(where)
        return not found

    try:
        until(settled, "the windows to agree with Slurm")
        agreed = sum(not wrong(where) for _ in range(5))
    except AssertionError as error:
        error.add_note("\n".join([*found, where.slurm("squeue", "--start"), where.ask("windows")]))
        raise
    assert agreed >= 4, found
    opened = {node: opens <= time.time() + 1.0 for node, opens, closes in shown(where) if closes is not None}
    assert opened == {"n2": False, "n3": True, "n4": True}  # n1 goes from one job to the next
