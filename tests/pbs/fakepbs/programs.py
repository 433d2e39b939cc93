"""Each command's answer, from its arguments: what it prints, what it complains of, its exit code (PBS's section 1B and 8B manual pages)."""

from __future__ import annotations

import getopt
import re
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from commensald.cluster import Reservation
from commensald.schedulers.local.jobs import RefusedError
from fakepbs import attributes, layout, options
from fakepbs.cluster import Cluster
from fakepbs.errors import BAD_STATE, NO_NODE, PbsError
from fakepbs.record import Record
from fakepbs.site import Queue


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A command as somebody typed it; ``script`` is what ``qsub`` read."""

    program: str
    argv: list[str]
    folder: str
    user: str
    environment: dict[str, str]
    script: str | None = None


class Reply(msgspec.Struct, kw_only=True):
    """``read`` asks for the script first: a path, or ``-`` for standard input."""

    out: str = ""
    errors: str = ""
    code: int = 0
    read: str | None = None


class Programs:
    """The commands on one cluster. ``signal(job, name)`` reaches the processes of a job."""

    def __init__(self, cluster: Cluster, signal: Callable[[str, str], None]) -> None:
        self._cluster, self._signal = cluster, signal
        self._reserved: dict[str, tuple[str, float]] = {}

    def answer(self, request: Request, now: float) -> Reply:
        """What the command does and prints."""
        commands: dict[str, Callable[[Request, float], Reply]] = {
            "qsub": self._qsub,
            "qdel": lambda asked, at: self._each(asked, at, "W:x", self._delete),
            "qrerun": lambda asked, at: self._each(asked, at, "W:", self._cluster.rerun),
            "qrls": lambda asked, at: self._each(asked, at, "h:", self._cluster.release),
            "qsig": self._qsig,
            "qstat": self._qstat,
            "pbsnodes": self._pbsnodes,
            "pbs_rstat": self._rstat,
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

    def _delete(self, job: str, now: float) -> None:
        self._cluster.delete(job, now)

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

    # Questions

    def _qstat(self, request: Request, now: float) -> Reply:
        given, names = getopt.getopt(request.argv, "aBfF:GHiJl:nMpQrsStTu:wx")
        flags = dict(given)
        if "-B" in flags:
            site = self._cluster.site
            return self._shown("Server", "Server: ", {site.server: attributes.server(self._cluster)}, flags, now)
        if "-Q" in flags:
            queues = {
                name: attributes.queue(self._cluster, name, each) for name, each in self._queues().items() if not names or name in names
            }
            return self._shown("Queue", "Queue: ", queues, flags, now)
        jobs, reply = self._chosen(names, flags)
        estimates = self._cluster.estimates(now)
        tables = {each.id: attributes.job(self._cluster, each, now, estimates.get(each.id)) for each in jobs}
        shown = self._shown("Jobs", "Job Id: ", tables, flags, now) if tables or "-f" in flags else Reply()
        return Reply(out=shown.out, errors=reply.errors, code=reply.code)

    def _queues(self) -> Mapping[str, Queue]:
        rooms = {r.name.partition(".")[0]: Queue(started=False) for r in self._cluster.core.reservations.values()}
        return {**self._cluster.site.queues, **rooms}

    def _chosen(self, names: Sequence[str], flags: Mapping[str, str]) -> tuple[list[Record], Reply]:
        """The jobs to show, and a complaint for each that is not there."""
        cluster, reply = self._cluster, Reply()
        every = {**cluster.jobs, **(cluster.history if "-x" in flags or "-H" in flags else {})}
        if not names:
            ordered = sorted(every.values(), key=lambda each: (int(each.number), each.index or 0))
            return [each for each in ordered if each.parent is None or "-t" in flags], reply
        found = []
        for name in names:
            full = name if "." in name else f"{name}.{cluster.site.server}"
            if full in every:
                found.append(every[full])
            elif full in cluster.history:
                reply.errors += f"qstat: {full} Job has finished, use -x or -H to obtain historical job information\n"
                reply.code = 35
            else:
                reply.errors += f"qstat: Unknown Job Id {full}\n"
                reply.code = 153
        return found, reply

    def _shown(self, kind: str, heading: str, tables: Mapping[str, Any], flags: Mapping[str, str], now: float) -> Reply:
        if flags.get("-F", "").lower() == "json":
            site = self._cluster.site
            head = {"timestamp": int(now), "pbs_version": site.version, "pbs_server": site.server}
            return Reply(out=layout.as_json({**head, **({kind: tables} if tables else {})}))
        if "-f" in flags:
            return Reply(out="".join(layout.as_text(heading + name, table) + "\n" for name, table in tables.items()))
        return Reply(out=_listing(tables) if kind == "Jobs" else "".join(f"{name}\n" for name in tables))

    # Nodes and reservations

    def _pbsnodes(self, request: Request, now: float) -> Reply:
        given, names = getopt.getopt(request.argv, "aC:D:F:HjlLoOrsSv")
        flags, site = dict(given), self._cluster.site
        for name in names:
            if name not in site.nodes:
                return Reply(errors=f"Node: {name},  Error: Unknown node \n", code=1)
            self._mark(name, flags)
        if flags.keys() & {"-o", "-r", "-C"}:
            return Reply()
        chosen = names or list(site.nodes)
        if flags.get("-F", "").lower() == "json":
            head = {"timestamp": int(now), "pbs_version": site.version, "pbs_server": site.server}
            return Reply(out=layout.as_json({**head, "nodes": {name: attributes.node(self._cluster, name) for name in chosen}}))
        tables = {name: attributes.node_text(self._cluster, name) for name in chosen}
        return Reply(out="".join(layout.as_text(name, table, 5, wrap=False) + "\n" for name, table in tables.items()))

    def _mark(self, name: str, flags: Mapping[str, str]) -> None:
        if "-o" in flags or "-r" in flags:
            self._cluster.offline(name, offline="-o" in flags)
        if "-C" in flags:
            self._cluster.node_comments[name] = flags["-C"]

    def _rstat(self, request: Request, now: float) -> Reply:
        site, flags = self._cluster.site, dict(getopt.getopt(request.argv, "fFSB")[0])
        every = self._cluster.core.reservations.values()
        tables = {each.name: attributes.reservation(site, each, *self._reserved[each.name], now) for each in every}
        if flags.keys() & {"-f", "-F"}:
            return Reply(out="".join(layout.as_text(f"Resv ID: {name}", table, 0, wrap=False) + "\n" for name, table in tables.items()))
        return Reply(out="".join(f"{name}\n" for name in tables))

    def _rsub(self, request: Request, now: float) -> Reply:
        """Only ``-R start -E end --hosts a b``, the times as epoch seconds too: ``touch -t`` has no finer grain than a minute here."""
        given, hosts = getopt.getopt(request.argv, "R:E:", ["hosts"])
        flags = dict(given)
        name = f"{'M' if '--hosts' in flags else 'R'}{self._cluster.next_id()}.{self._cluster.site.server}"
        start, end = (_moment(flags[flag]) for flag in ("-R", "-E"))
        try:
            self._cluster.core.reserve(Reservation(name=name, nodes=frozenset(hosts), start=start, end=end))
        except RefusedError as error:
            raise PbsError(NO_NODE, str(error)) from error
        self._reserved[name] = (request.user, now)
        return Reply(out=f"{name} CONFIRMED\n")

    def _rdel(self, request: Request, now: float) -> Reply:
        for name in request.argv:
            self._cluster.core.reservations.pop(name, None)
        return Reply()

    # qmgr

    def _qmgr(self, request: Request, now: float) -> Reply:
        words = shlex.split(dict(getopt.getopt(request.argv, "c:")[0]).get("-c", ""))
        match words:
            case ["list" | "l", "sched", *_]:
                return Reply(out=layout.as_text("Sched default", attributes.scheduler(self._cluster.site), wrap=False) + "\n")
            case ["list" | "l", "server", *_]:
                return Reply(out=layout.as_text("Server " + self._cluster.site.server, attributes.server(self._cluster), wrap=False) + "\n")
            case ["set" | "s", "sched" | "server", *rest]:
                return self._set(self._cluster.site, rest)
            case ["set" | "s", "queue", name, *rest] if name in self._cluster.site.queues:
                return self._set(self._cluster.site.queues[name], rest)
        return Reply(errors=f"qmgr: Syntax error\n{' '.join(words)}\n", code=2)

    def _set(self, what: Any, words: Sequence[str]) -> Reply:  # noqa: ANN401 - a Site or a Queue
        name, _, value = "".join(words).partition("=")
        fields = {field.name: field.type for field in msgspec.structs.fields(what)}
        if name.lower() not in fields:
            return Reply(errors=f"qmgr: Undefined attribute  {name}\n", code=1)
        setattr(what, name.lower(), msgspec.convert(value, fields[name.lower()], strict=False))
        return Reply()


def _moment(text: str) -> float:
    return time.mktime(time.strptime(text, "%Y%m%d%H%M.%S")) if re.fullmatch(r"\d{12}\.\d\d", text) else float(text)


def _listing(tables: Mapping[str, Any]) -> str:
    """Plain ``qstat``."""
    rows = [("Job id", "Name", "User", "Time Use", "S", "Queue"), ("-" * 16, "-" * 16, "-" * 16, "-" * 8, "-", "-" * 5)]
    for name, table in tables.items():
        used = table.get("resources_used", {}).get("walltime", "0")
        rows.append((name, table["Job_Name"], table["euser"], used, table["job_state"], table["queue"]))
    return "".join(_row(row) for row in rows)


def _row(cells: Iterable[str]) -> str:
    job, name, user, used, state, queue = cells
    return f"{job:<16.16}  {name:<16.16} {user:<16.16}  {used:>8} {state} {queue:<5}\n"
