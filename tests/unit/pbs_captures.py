"""Captures of OpenPBS 23.06 (one server, two MOMs, a preemption by R) as the daemon would have got them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from commensald.cluster import Job, Snapshot
from commensald.schedulers.pbs import answers, settings, text
from commensald.schedulers.pbs.jobs import Around, jobs
from commensald.schedulers.pbs.nodes import hosts, nodes
from commensald.schedulers.pbs.queues import Queue, queues
from commensald.schedulers.pbs.records import Reading, Record
from commensald.schedulers.pbs.reservations import queues as reserved
from commensald.schedulers.pbs.reservations import reservations

FOLDER = Path(__file__).parents[1] / "fixtures" / "pbs"
JOBS_AS_JSON = ("qstat_f.json", "qstat_f2.json", "qstat_tf.json", "qstat_tf2.json", "qstat_xf.json")
EARLY = ("qstat_tf.json", "pbsnodes_a.json", "qstat_Q.json", "pbs_rstat_F.txt")
LATE = ("qstat_tf2.json", "pbsnodes_a2.json", "qstat_Q2.json", "pbs_rstat_F2.txt")
"""The same queue during the preemption, and when primary jobs run."""


def capture(name: str) -> str:
    """One capture."""
    return (FOLDER / name).read_text(encoding="utf-8")


def read(name: str) -> Reading:
    return answers.jobs(capture(name))


def section(name: str, key: str) -> Mapping[str, Record]:
    return answers.others(capture(name), key)


def shown_queues(name: str = "qstat_Q.json") -> dict[str, Queue]:
    return queues(section(name, "Queue"))


def snapshot(names: tuple[str, str, str, str]) -> Snapshot:
    """As the scheduler puts it together; ``taken`` is the capture's own time."""
    reading, vnodes, known = read(names[0]), section(names[1], "nodes"), shown_queues(names[2])
    rooms = text.reservations(capture(names[3]))
    around = Around(hosts=hosts(vnodes), host_cpus=4, queues=known, reserved=reserved(rooms))
    taken = float(re.findall(r'"timestamp":\t(\d+)', capture(names[0]))[0])
    server, sched = section("qstat_B.json", "Server")["pbs-s"], text.attributes(capture("list_sched.txt"))
    return Snapshot(
        taken=taken,
        nodes=nodes(vnodes, known),
        jobs=jobs(reading, around, taken),
        reservations=reservations(rooms, around.hosts),
        facts=settings.facts(server["pbs_version"], server, sched, known["scavq"], {}),
    )


def by_id(shown: Snapshot) -> dict[str, Job]:
    return {each.id: each for each in shown.jobs}
