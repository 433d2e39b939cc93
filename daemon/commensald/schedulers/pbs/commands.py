"""Command lines of PBS, built whole: argument vectors and an environment, never a shell.

Nothing of the caller's environment gets through but where the server is. In particular the time zone: PBS's clients print times as this
host sees them, so they are asked to be in UTC.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from commensald.cluster import Node
from commensald.schedulers import PilotSpec
from commensald.schedulers.pbs.attributes import PILOT
from commensald.schedulers.pbs.names import job_id, node_name
from commensald.schedulers.pbs.times import clock

PATH = "/opt/pbs/bin:/opt/pbs/sbin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

JOBS = ("qstat", "-f", "-t", "-F", "json")
JOBS_AS_TEXT = ("qstat", "-f", "-t")
ENDED_TOO = ("qstat", "-f", "-x", "-F", "json")
NODES = ("pbsnodes", "-a", "-v", "-F", "json")
"""With -v: without it a host of several vnodes shows ``<various>`` states (radical.saga#427)."""
RESERVATIONS = ("pbs_rstat", "-F")
QUEUES = ("qstat", "-Q", "-f", "-F", "json")
SERVER = ("qstat", "-B", "-f", "-F", "json")
SCHED = ("qmgr", "-c", "list sched")

_GONE = ("Unknown Job Id", "Job has finished", "Request invalid for state of job", "Unknown Job")


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What of a host a pilot takes: all of it, so that limits set by what was asked for (cgroups) leave it all. 0 is not asked for."""

    cpus: int = 1
    gpus: int = 0
    memory_mib: int = 0

    def chunk(self) -> str:
        """As a part of ``select``."""
        asked = {"ncpus": str(self.cpus), "ngpus": str(self.gpus), "mem": f"{self.memory_mib}mb"}
        return ":".join(f"{name}={value}" for name, value in asked.items() if value not in ("0", "0mb"))


def environment(path: str | None, pbs_conf: str | None, home: str = "/") -> dict[str, str]:
    """What a command of PBS's gets: plain language, UTC, and where the server is."""
    given = {"PATH": search_path(path), "LC_ALL": "C.UTF-8", "TZ": "UTC0", "HOME": home}
    told = {name: os.environ.get(name) for name in ("PBS_CONF_FILE", "PBS_SERVER")} | ({"PBS_CONF_FILE": pbs_conf} if pbs_conf else {})
    return given | {name: value for name, value in told.items() if value}


def search_path(path: str | None) -> str:
    """Where PBS's commands are looked for, by us and by what runs in a pilot."""
    return PATH if path is None else f"{path}:{PATH}"


def shape(nodes: Sequence[Node], name: str | None) -> Shape:
    """That of the host of this name; without a name the one that most hosts have, with the least memory of these."""
    found = [Shape(cpus=max(node.cpus, 1), gpus=node.gpus, memory_mib=node.memory_mib) for node in nodes if name in (None, node.name)]
    common = Counter((each.cpus, each.gpus) for each in found).most_common(1)
    alike = [each for each in found if (each.cpus, each.gpus) == common[0][0]]
    return min(alike, key=lambda each: each.memory_mib, default=Shape())


def qsub(spec: PilotSpec, seconds: float, wants: Shape, least_seconds: float | None) -> list[str]:
    """Submits one pilot for so long; its script comes on standard input. Raises WrongNameError.

    Not shorter than ``least_seconds`` the scheduler may shrink it, so that it fits before what is planned (``None``: as long as asked).
    ``-r y``: a pilot that cannot be requeued is not preempted by R. ``-c n``: nor does anybody try to checkpoint it. ``-v`` exports one
    variable and nothing else, the tag. ``-k oed`` lets its output go where it belongs as it is written.
    """
    host = "" if spec.node is None else f":host={node_name(spec.node)}"
    chosen = {"-q": spec.partition, "-A": spec.account}
    return [
        "qsub",
        *("-N", "commensal"),
        *("-S", "/bin/sh"),
        *("-r", "y"),
        *("-c", "n"),
        *("-m", "n"),
        *("-j", "oe"),
        *("-k", "oed"),
        *("-o", f"{spec.folder}/{spec.uuid}.log"),
        *("-v", f"{PILOT}={spec.uuid}"),
        *("-W", "umask=077"),
        *("-l", f"select=1{host}:{wants.chunk()}"),
        *("-l", "place=scatter:exclhost"),
        *(part for limit in _walltime(seconds, least_seconds) for part in ("-l", limit)),
        *(part for option, value in chosen.items() if value is not None for part in (option, value)),
    ]


def _walltime(seconds: float, least_seconds: float | None) -> list[str]:
    if least_seconds is None or seconds <= least_seconds:
        return [f"walltime={clock(seconds)}"]
    return [f"min_walltime={clock(least_seconds)},max_walltime={clock(seconds)}"]


def limit_seconds(asked: float | None, most: float | None, longest: float) -> float:
    """The finite walltime to submit with: what was asked for, what the queue allows, and ``longest`` at the most."""
    return min(each for each in (asked, most, longest) if each is not None)


def qdel(ids: Sequence[str]) -> list[str]:
    """Ends these jobs. Raises WrongNameError."""
    return ["qdel", *(job_id(each) for each in ids)]


def only_gone(errors: str) -> bool:
    """Whether all that qdel complained of is jobs that have ended already."""
    lines = [line for line in errors.split("\n") if line.strip()]
    return bool(lines) and all(any(word in line for word in _GONE) for line in lines)


def batches(ids: Iterable[str], most: int = 200) -> list[list[str]]:
    """The ids in lots that fit on a command line."""
    every = list(ids)
    return [every[at : at + most] for at in range(0, len(every), most)]
