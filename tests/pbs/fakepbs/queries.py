"""The commands that only look: ``qstat``, ``pbsnodes``, ``pbs_rstat``."""

from __future__ import annotations

import getopt
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fakepbs import job_attributes, layout, site_attributes
from fakepbs.cluster import Cluster
from fakepbs.protocol import Reply, Request
from fakepbs.record import Record
from fakepbs.site import Queue


class Queries:
    """``reserved``: reservation -> (owner, when it was made)."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.reserved: dict[str, tuple[str, float]] = {}

    def qstat(self, request: Request, now: float) -> Reply:
        given, names = getopt.getopt(request.argv, "aBfF:GHiJl:nMpQrsStTu:wx")
        flags = dict(given)
        if "-B" in flags:
            site = self._cluster.site
            return self._shown("Server", "Server: ", {site.server: site_attributes.server(self._cluster)}, flags, now)
        if "-Q" in flags:
            chosen = {name: each for name, each in self._queues().items() if not names or name in names}
            queues = {name: site_attributes.queue(self._cluster, name, each) for name, each in chosen.items()}
            return self._shown("Queue", "Queue: ", queues, flags, now)
        jobs, reply = self._chosen(names, flags)
        estimates = self._cluster.estimates(now)
        tables = {each.id: job_attributes.job(self._cluster, each, now, estimates.get(each.id)) for each in jobs}
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

    def pbsnodes(self, request: Request, now: float) -> Reply:
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
            return Reply(out=layout.as_json({**head, "nodes": {name: site_attributes.node(self._cluster, name) for name in chosen}}))
        tables = {name: site_attributes.node_text(self._cluster, name) for name in chosen}
        return Reply(out="".join(layout.as_text(name, table, 5, wrap=False) + "\n" for name, table in tables.items()))

    def _mark(self, name: str, flags: Mapping[str, str]) -> None:
        if "-o" in flags or "-r" in flags:
            self._cluster.offline(name, offline="-o" in flags)
        if "-C" in flags:
            self._cluster.node_comments[name] = flags["-C"]

    def rstat(self, request: Request, now: float) -> Reply:
        site, flags = self._cluster.site, dict(getopt.getopt(request.argv, "fFSB")[0])
        every = self._cluster.core.reservations.values()
        tables = {each.name: site_attributes.reservation(site, each, *self.reserved[each.name], now) for each in every}
        if flags.keys() & {"-f", "-F"}:
            return Reply(out="".join(layout.as_text(f"Resv ID: {name}", table, 0, wrap=False) + "\n" for name, table in tables.items()))
        return Reply(out="".join(f"{name}\n" for name in tables))


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
