"""Each command's answer, from its arguments: what it prints, what it complains of, its exit code (PBS's section 1B and 8B manual pages)."""

from __future__ import annotations

import getopt
import shlex
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from commensald.cluster import Reservation
from commensald.schedulers.local.jobs import RefusedError
from fakepbs import layout, options, site_attributes
from fakepbs.cluster import Cluster
from fakepbs.errors import BAD_STATE, NO_NODE, PbsError
from fakepbs.protocol import Reply, Request
from fakepbs.queries import Queries


class Programs:
    """The commands on one cluster. ``signal(job, name)`` reaches the processes of a job."""

    def __init__(self, cluster: Cluster, signal: Callable[[str, str], None]) -> None:
        self._cluster, self._signal = cluster, signal
        self._queries = Queries(cluster)

    def answer(self, request: Request, now: float) -> Reply:
        """What the command does and prints."""
        commands: dict[str, Callable[[Request, float], Reply]] = {
            "qsub": self._qsub,
            "qdel": lambda asked, at: self._each(asked, at, "W:x", self._cluster.delete),
            "qrerun": lambda asked, at: self._each(asked, at, "W:", self._cluster.rerun),
            "qrls": lambda asked, at: self._each(asked, at, "h:", self._cluster.release),
            "qsig": self._qsig,
            "qstat": self._queries.qstat,
            "pbsnodes": self._queries.pbsnodes,
            "pbs_rstat": self._queries.rstat,
            "pbs_rsub": self._rsub,
            "pbs_rdel": self._rdel,
            "qmgr": self._qmgr,
        }
        try:
            return commands[request.program](request, now)
        except PbsError as error:
            return Reply(errors=f"{request.program}: {error}\n", code=error.code)
        except getopt.GetoptError as error:
            return Reply(errors=f"{request.program}: {error}\n", code=2)

    # Jobs

    def _qsub(self, request: Request, now: float) -> Reply:
        operands = options.operands(request.argv)
        if request.script is None:
            return Reply(read=operands[0] if operands else "-")
        asked = options.read(request.argv, request.script, request.environment)
        job = self._cluster.submit(asked, request.script, request.user, self._origin(request, asked), now)
        return Reply(out=f"{job.id}\n")

    def _origin(self, request: Request, asked: options.Asked) -> dict[str, str]:
        """PBS_O_*, in PBS's order."""
        site, known = self._cluster.site, request.environment
        return {
            "PBS_O_HOME": known.get("HOME", "/"),
            "PBS_O_LANG": known.get("LANG", "C.UTF-8"),
            "PBS_O_LOGNAME": request.user,
            "PBS_O_PATH": known.get("PATH", "/usr/bin:/bin"),
            "PBS_O_MAIL": f"/var/mail/{request.user}",
            "PBS_O_SHELL": "/bin/bash",
            "PBS_O_INTERACTIVE_AUTH_METHOD": "resvport",
            "PBS_O_INTERACTIVE_ENCRYPT_METHOD": "",
            "PBS_O_WORKDIR": request.folder,
            "PBS_O_SYSTEM": "Linux",
            "PBS_O_QUEUE": asked.queue or site.default_queue,
            "PBS_O_HOST": site.server,
        }

    def _each(self, request: Request, now: float, flags: str, act: Callable[[str, float], None]) -> Reply:
        """Do it to every job named; all that fail are told, the exit code is the last one's."""
        reply = Reply()
        for job in getopt.getopt(request.argv, flags)[1]:
            try:
                act(job, now)
            except PbsError as error:
                reply.errors += f"{request.program}: {error}\n"
                reply.code = error.code
        return reply

    def _qsig(self, request: Request, now: float) -> Reply:
        given, _ = getopt.getopt(request.argv, "s:")
        name = dict(given).get("-s", "TERM").removeprefix("SIG")
        return self._each(request, now, "s:", lambda job, at: self._send(job, name))

    def _send(self, job: str, name: str) -> None:
        found = self._cluster.find(job)
        if found.state != "R":
            raise PbsError(BAD_STATE, found.id)
        self._signal(found.id, name)

    # Reservations

    def _rsub(self, request: Request, now: float) -> Reply:
        """Only ``-R start -E end --hosts a b``, the times as CCYYMMDDhhmm.SS."""
        given, hosts = getopt.getopt(request.argv, "R:E:", ["hosts"])
        flags = dict(given)
        name = f"{'M' if '--hosts' in flags else 'R'}{self._cluster.next_id()}.{self._cluster.site.server}"
        start, end = (time.mktime(time.strptime(flags[flag], "%Y%m%d%H%M.%S")) for flag in ("-R", "-E"))
        try:
            self._cluster.core.reserve(Reservation(name=name, nodes=frozenset(hosts), start=start, end=end))
        except RefusedError as error:
            raise PbsError(NO_NODE, str(error)) from error
        self._queries.reserved[name] = (request.user, now)
        return Reply(out=f"{name} CONFIRMED\n")

    def _rdel(self, request: Request, now: float) -> Reply:
        for name in request.argv:
            self._cluster.core.reservations.pop(name, None)
        return Reply()

    # qmgr

    def _qmgr(self, request: Request, now: float) -> Reply:
        site, words = self._cluster.site, shlex.split(dict(getopt.getopt(request.argv, "c:")[0]).get("-c", ""))
        match words:
            case ["list" | "l", "sched", *_]:
                return Reply(out=layout.as_text("Sched default", site_attributes.scheduler(site), wrap=False) + "\n")
            case ["list" | "l", "server", *_]:
                return Reply(out=layout.as_text(f"Server {site.server}", site_attributes.server(self._cluster), wrap=False) + "\n")
            case ["set" | "s", "sched" | "server", *rest]:
                return self._set(site, rest)
            case ["set" | "s", "queue", name, *rest] if name in site.queues:
                return self._set(site.queues[name], rest)
        return Reply(errors=f"qmgr: Syntax error\n{' '.join(words)}\n", code=2)

    def _set(self, what: Any, words: Sequence[str]) -> Reply:  # noqa: ANN401 - a Site or a Queue
        name, _, value = "".join(words).partition("=")
        fields = {field.name: field.type for field in msgspec.structs.fields(what)}
        if name.lower() not in fields:
            return Reply(errors=f"qmgr: Undefined attribute  {name}\n", code=1)
        setattr(what, name.lower(), msgspec.convert(value, fields[name.lower()], strict=False))
        return Reply()
