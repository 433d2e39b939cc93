"""What ``qstat -f`` shows of a job, a subjob or an array: the names and the order of OpenPBS 23.06. Pure."""

from __future__ import annotations

from collections import Counter

from fakepbs.cluster import Cluster
from fakepbs.layout import Table, day, given
from fakepbs.options import clock
from fakepbs.record import Record
from fakepbs.site import Site


def job(cluster: Cluster, which: Record, now: float, estimate: tuple[float, tuple[str, ...]] | None = None) -> Table:
    """One job, subjob or array, as ``qstat -f`` shows it."""
    waiting_subjob = which.parent is not None and which.state == "Q"
    shown = cluster.jobs[which.parent] if waiting_subjob and which.parent is not None else which
    active_subjob = which.parent is not None and not waiting_subjob
    asked, site = which.asked, cluster.site
    array, ran = bool(which.children), which.run_count > 0
    return given(
        {
            "Job_Name": asked.name,
            "Job_Owner": f"{which.owner}@{site.server}",
            "resources_used": _used(which, now) if which.state in "RSFX" and ran else None,
            "job_state": which.state,
            "queue": which.queue,
            "server": site.server,
            "Account_Name": asked.account,
            "Checkpoint": None if active_subjob else asked.checkpoint,
            "ctime": day(which.created),
            "Error_Path": _path(which, site, asked.error, "e"),
            "exec_host": which.exec_host or None,
            "exec_vnode": which.exec_vnode or None,
            "Hold_Types": None if active_subjob else "u" if which.state == "H" else "n",
            "Join_Path": asked.join,
            "Keep_Files": asked.keep,
            "Mail_Points": asked.mail,
            "mtime": day(which.modified),
            "Output_Path": _path(which, site, asked.output, "o"),
            "Priority": asked.priority,
            "qtime": day(which.created),
            "Rerunable": str(asked.rerunable),
            "Resource_List": _resources(which),
            "schedselect": asked.select,
            "stime": day(shown.started),
            "obittime": day(which.obit),
            "session_id": which.session,
            "jobdir": which.origin["PBS_O_HOME"] if which.nodes and ran else None,
            "substate": which.substate,
            "Variable_List": {**which.origin, **asked.variables},
            "euser": which.owner,
            "egroup": which.owner,
            "hashname": which.id if ran else None,
            "queue_rank": int(which.created * 1e6),
            "queue_type": "E",
            "comment": shown.comment,
            "etime": day(which.eligible),
            "run_count": which.run_count or None,
            "Stageout_status": 1 if which.finished and ran else None,
            "Exit_status": which.exit_status,
            "Submit_arguments": None if active_subjob else asked.argv,
            "estimated": _estimated(which, estimate),
            **(_array(which) if array else {}),
            "array_id": which.parent if active_subjob else None,
            "array_index": which.index if active_subjob else None,
            "history_timestamp": None if which.finished is None else int(which.finished),
            "project": None if waiting_subjob else asked.project,
            "run_version": which.run_count or None,
            "Submit_Host": None if waiting_subjob else site.server,
        }
    )


def output(which: Record, asked: str | None, letter: str) -> str:
    """Where its output or its errors go: PBS's default is ``<name>.o<number>`` in the folder of the submission."""
    suffix = "" if which.index is None else f".{which.index}"
    if which.children:
        suffix = ".^array_index^"
    workdir = which.origin["PBS_O_WORKDIR"]
    name = f"{which.asked.name}.{letter}{which.number}{suffix}" if asked is None else asked
    index = "" if which.index is None else str(which.index)
    return (name if name.startswith("/") else f"{workdir}/{name}").replace("^array_index^", index or "^array_index^")


def _used(which: Record, now: float) -> Table:
    seconds = (which.obit or now) - which.started if which.started is not None else 0.0
    cpus = sum(count for _, count in which.placed)
    return {"cpupercent": 0, "cput": "00:00:00", "mem": "8896kb", "ncpus": cpus, "vmem": "13372kb", "walltime": clock(max(seconds, 0.0))}


def _path(which: Record, site: Site, asked: str | None, letter: str) -> str:
    return f"{site.server}:{output(which, asked, letter)}"


def _resources(which: Record) -> Table:
    asked = which.asked
    limit = which.limit if which.limit is not None else asked.walltime
    least, most = asked.shrink or (None, None)
    return given(
        {
            "max_walltime": None if most is None else clock(most),
            "min_walltime": None if least is None else clock(least),
            "ncpus": sum(chunk.count * chunk.ncpus for chunk in asked.chunks),
            "nodect": asked.node_count,
            "place": asked.place,
            "select": asked.select,
            "walltime": None if limit is None else clock(limit),
        }
    )


def _estimated(which: Record, estimate: tuple[float, tuple[str, ...]] | None) -> Table | None:
    if estimate is None or which.state != "Q":
        return None
    start, nodes = estimate
    cpus = [chunk.ncpus for chunk in which.asked.chunks for _ in range(chunk.count)]
    vnodes = "+".join(f"({place}:ncpus={count})" for place, count in zip(nodes, cpus, strict=True))
    return {"exec_vnode": vnodes, "start_time": day(start)}


def _array(which: Record) -> Table:
    states = Counter(child.state for child in which.children)
    counts = {"Queued": states["Q"], "Running": states["R"] + states["S"], "Exiting": 0, "Expired": states["X"]}
    first, last = which.asked.array or (0, 0)
    waiting = [child.index for child in which.children if child.state == "Q" and child.index is not None]
    remaining = f"{waiting[0]}-{waiting[-1]}" if len(waiting) > 1 else str(waiting[0]) if waiting else "-"
    return {
        "array": "True",
        "array_state_count": " ".join(f"{name}:{count}" for name, count in counts.items()),
        "array_indices_submitted": f"{first}-{last}",
        "array_indices_remaining": remaining,
    }
