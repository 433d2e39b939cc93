#!/usr/bin/env python3
"""What one look at a large Slurm cluster costs the daemon: CPU and memory of reading ``scontrol``'s answers.

The answers, by default of 1,000 nodes and 5,000 jobs, are made from this project's own captures of a real cluster. The first look fills
caches (node lists), later ones are the rule. With --check the exit code is 1 beyond 1 s of CPU or 60 MB, the limits that issue 3 sets.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time
from pathlib import Path

import msgspec
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "unit"))
from slurm_captures import MARK, show

from commensald.cluster import Job, Node
from commensald.schedulers.slurm import text
from commensald.schedulers.slurm.jobs import jobs
from commensald.schedulers.slurm.nodes import nodes

MIB = 1 << 20
MOST_SECONDS, MOST_MIB = 1.0, 60.0


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """One look: CPU seconds, and memory grown since before the first."""

    cpu_seconds: float
    grown_mib: float


def job_text(version: str, count: int, node_count: int) -> str:
    """So many jobs, half of them running, each with an id, a name and nodes of its own."""
    lines = show(version, "job").split("\n")
    running = next(line for line in lines if "JobState=RUNNING" in line and "ArrayJobId" not in line)
    planned = next(line for line in lines if "SchedNodeList=" in line)
    chance = random.Random(count)
    made = []
    for number in range(count):
        first, width = chance.randint(1, node_count), chance.randint(1, 32)
        folded = f"f[{first:04}-{first + width:04}]" if number % 3 else f"f{first:04}"
        line = (
            running.replace(" NodeList=n1", f" NodeList={folded}")
            if number % 2
            else planned.replace("SchedNodeList=n", f"SchedNodeList={folded},n")
        )
        name = f"JobName=job {number} of a user with a name that is rather long"
        made.append(f"JobId={1000 + number} {name}{line[line.index(' UserId=') :]}")
    return "\n".join(made) + "\n"


def node_text(version: str, count: int) -> str:
    """So many nodes."""
    line = show(version, "node").split("\n")[0]
    return "".join(f"{line.replace('NodeName=n1', f'NodeName=f{number:04}')}\n" for number in range(1, count + 1))


def look(shown_jobs: bytes, shown_nodes: bytes) -> tuple[tuple[Job, ...], tuple[Node, ...]]:
    """As the scheduler reads them."""
    records = list(text.jobs(shown_jobs.decode(errors="replace"), MARK))
    return jobs(records), nodes(list(text.split(shown_nodes.decode(errors="replace"), "NodeName")))


def measure(shown_jobs: bytes, shown_nodes: bytes, looks: int) -> list[Look]:
    """Several looks in a row, the result of each replacing the one before, as in the daemon."""
    gc.collect()
    process = psutil.Process()
    before, kept, found = process.memory_info().rss, None, []
    for _ in range(looks):
        began = time.process_time()
        kept = look(shown_jobs, shown_nodes)
        cpu_seconds = time.process_time() - began
        found.append(Look(cpu_seconds=cpu_seconds, grown_mib=(process.memory_info().rss - before) / MIB))
    assert kept is not None
    return found


def main() -> int:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--looks", type=int, default=5)
    parser.add_argument("--version", default="26.05.5", help="whose captures (tests/fixtures/slurm)")
    parser.add_argument("--check", action="store_true", help="fail beyond the limits")
    asked = parser.parse_args()
    shown_jobs = job_text(asked.version, asked.jobs, asked.nodes).encode()
    shown_nodes = node_text(asked.version, asked.nodes).encode()
    sizes = f"{len(shown_jobs) / MIB:.1f} and {len(shown_nodes) / MIB:.1f} MiB"
    print(f"Slurm {asked.version}: {asked.jobs} jobs, {asked.nodes} nodes, {sizes}")
    found = measure(shown_jobs, shown_nodes, asked.looks)
    for number, each in enumerate(found, 1):
        print(f"look {number}: {each.cpu_seconds:.2f} s CPU, {each.grown_mib:+.0f} MiB")
    return int(asked.check and (found[0].cpu_seconds > MOST_SECONDS or max(each.grown_mib for each in found) > MOST_MIB))


if __name__ == "__main__":
    sys.exit(main())
