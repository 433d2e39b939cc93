"""What the server shows of jobs, nodes, queues, reservations and itself: the names and the order of OpenPBS 23.06. Pure."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from commensald.cluster import Reservation
from fakepbs.cluster import Cluster
from fakepbs.options import clock
from fakepbs.record import Record
from fakepbs.site import Queue, Site

MEMORY = "24683656kb"
NO_RESOURCES = {"accelerator_memory": "0kb", "hbmem": "0kb", "mem": "0kb", "naccelerators": 0}
STATES = {"Transit": "T", "Queued": "Q", "Held": "H", "Waiting": "W", "Running": "R", "Exiting": "E", "Begun": "B"}
Table = dict[str, Any]


def day(at: float | None) -> str | None:
    """As ctime(3): in the server's own time zone."""
    return None if at is None else time.strftime("%a %b %e %H:%M:%S %Y", time.localtime(at))


def given(table: Table) -> Table:
    """Without what is not set."""
    return {name: value for name, value in table.items() if value is not None}


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


def node(cluster: Cluster, name: str) -> Table:
    """One vnode, as ``pbsnodes -F json`` shows it."""
    cpus, busy = cluster.site.nodes[name], on_node(cluster, name)
    used = sum(count for each in busy for place, count in each.placed if place == name)
    reserved = [r.name for r in cluster.core.reservations.values() if name in r.nodes]
    return given(
        {
            "Mom": name,
            "Port": 15002,
            "pbs_version": cluster.site.version,
            "ntype": "PBS",
            "state": _node_state(cluster, name, bool(busy)),
            "pcpus": cpus,
            "jobs": [each.id for each in busy] or None,
            "resv": ", ".join(reserved) or None,
            "resources_available": {"arch": "linux", "host": name, "mem": MEMORY, "ncpus": cpus, "vnode": name},
            "resources_assigned": {"ncpus": used} if used else {},
            "comment": cluster.node_comments.get(name),
            "resv_enable": "True",
            "sharing": cluster.site.sharing,
            "license": "l",
            "last_state_change_time": int(max((each.modified for each in busy), default=0.0)),
            "last_used_time": int(max((each.modified for each in busy), default=0.0)),
        }
    )


def node_text(cluster: Cluster, name: str) -> Table:
    """The same as ``pbsnodes -a`` prints it: a job once for each cpu, zeros, dates."""
    table = node(cluster, name)
    if "jobs" in table:
        table["jobs"] = [f"{each.id}/{cpu}" for each in on_node(cluster, name) for cpu in range(dict(each.placed)[name])]
    used = table["resources_assigned"].get("ncpus", 0)
    table["resources_assigned"] = {**NO_RESOURCES, "ncpus": used, "vmem": "0kb"}
    for moment in ("last_state_change_time", "last_used_time"):
        table[moment] = day(table[moment])
    return table


def on_node(cluster: Cluster, name: str) -> list[Record]:
    """The jobs that have their place there; suspended ones do not count."""
    return [each for each in cluster.jobs.values() if each.state == "R" and name in each.nodes]


def queue(cluster: Cluster, name: str, settings: Queue) -> Table:
    """One queue, as ``qstat -Qf`` shows it."""
    jobs = [each for each in _top(cluster) if each.queue == name]
    return given(
        {
            "queue_type": "Execution",
            "Priority": settings.priority,
            "total_jobs": len(jobs),
            "state_count": _counted(jobs),
            "resources_assigned": _assigned(cluster, name) if jobs else None,
            "kill_delay": settings.kill_delay,
            "enabled": str(settings.enabled),
            "started": str(settings.started),
        }
    )


def server(cluster: Cluster) -> Table:
    """The server, as ``qstat -Bf`` shows it."""
    site, jobs = cluster.site, list(_top(cluster))
    return given(
        {
            "server_state": "Scheduling" if site.scheduling else "Idle",
            "server_host": site.server,
            "scheduling": str(site.scheduling),
            "total_jobs": len(jobs),
            "state_count": _counted(jobs),
            "default_queue": site.default_queue,
            "log_events": 511,
            "mailer": "/usr/sbin/sendmail",
            "mail_from": "adm",
            "query_other_jobs": "True",
            "resources_default": {"ncpus": 1},
            "default_chunk": {"ncpus": 1},
            "resources_assigned": _assigned(cluster, None),
            "scheduler_iteration": site.scheduler_iteration,
            "flatuid": "True",
            "resv_enable": "True",
            "node_fail_requeue": 310,
            "max_array_size": 10000,
            "resend_term_delay": 5,
            "pbs_license_min": 0,
            "pbs_license_max": 2147483647,
            "pbs_license_linger_time": 31536000,
            "license_count": "Avail_Global:1000000 Avail_Local:1000000 Used:0 High_Use:0",
            "pbs_version": site.version,
            "eligible_time_enable": "False",
            "job_history_enable": "True",
            "max_concurrent_provision": 5,
            "backfill_depth": site.backfill_depth,
            "clear_topjob_estimates_enable": "False",
            "power_provisioning": "False",
            "max_job_sequence_id": 9999999,
        }
    )


def scheduler(site: Site) -> Table:
    """What ``qmgr -c "list sched"`` prints."""
    return {
        "sched_host": site.server,
        "sched_cycle_length": "00:20:00",
        "throughput_mode": "True",
        "job_run_wait": "runjob_hook",
        "partition": "pbs-default",
        "sched_priv": "/var/spool/pbs/sched_priv",
        "sched_log": "/var/spool/pbs/sched_logs",
        "scheduling": str(site.scheduling),
        "scheduler_iteration": site.scheduler_iteration,
        "state": "scheduling",
        "preempt_queue_prio": site.preempt_queue_prio,
        "preempt_prio": "express_queue, normal_jobs",
        "preempt_order": site.preempt_order,
        "preempt_sort": "min_time_since_start",
        "log_events": 767,
        "server_dyn_res_alarm": 30,
    }


def reservation(site: Site, which: Reservation, owner: str, made: float, now: float) -> Table:
    """One reservation, as ``pbs_rstat -F`` prints it. Raises nothing; ``end`` is always set here."""
    length, cpus = int((which.end or which.start) - which.start), sum(site.nodes[node] for node in which.nodes)
    running, vnodes = which.start <= now, "+".join(f"({node}:ncpus={site.nodes[node]})" for node in sorted(which.nodes))
    select = "+".join(f"1:host={node}:ncpus={site.nodes[node]}" for node in sorted(which.nodes))
    return {
        "Reserve_Name": "NULL",
        "Reserve_Owner": f"{owner}@{site.server}",
        "reserve_state": "RESV_RUNNING" if running else "RESV_CONFIRMED",
        "reserve_substate": 5 if running else 2,
        "reserve_start": day(which.start),
        "reserve_end": day(which.end),
        "reserve_duration": length,
        "queue": which.name.partition(".")[0],
        "Resource_List": {"ncpus": cpus, "nodect": len(which.nodes), "select": select, "place": "exclhost", "walltime": clock(length)},
        "schedselect": select,
        "resv_nodes": vnodes,
        "Authorized_Users": f"{owner}@{site.server}",
        "server": site.server,
        "ctime": day(made),
        "mtime": day(made),
        "Variable_List": {"PBS_O_LOGNAME": owner, "PBS_O_HOST": site.server, "PBS_O_MAIL": f"/var/mail/{owner}"},
        "euser": owner,
        "egroup": owner,
        "reserve_count": 1,
        "Submit_Host": site.server,
        "partition": "pbs-default",
    }


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


def _node_state(cluster: Cluster, name: str, busy: bool) -> str:
    offline = ["offline"] if name in cluster.core.down else []
    return ",".join([*offline, *(["job-exclusive"] if busy else [])]) or "free"


def _top(cluster: Cluster) -> Iterable[Record]:
    return (each for each in cluster.jobs.values() if each.parent is None)


def _counted(jobs: Iterable[Record]) -> str:
    states = Counter(each.state for each in jobs)
    return "".join(f"{name}:{states[letter]} " for name, letter in STATES.items())


def _assigned(cluster: Cluster, name: str | None) -> Table:
    running = [each for each in cluster.jobs.values() if each.state == "R" and not each.children and name in (None, each.queue)]
    return {"ncpus": sum(cpus for each in running for _, cpus in each.placed), "nodect": sum(len(each.nodes) for each in running)}
