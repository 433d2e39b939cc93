"""What the server shows of nodes, queues, reservations and itself: the names and the order of OpenPBS 23.06. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from commensald.cluster import Reservation
from fakepbs.cluster import Cluster
from fakepbs.layout import Table, day, given
from fakepbs.options import clock
from fakepbs.record import Record
from fakepbs.site import Queue, Site

MEMORY = "24683656kb"
NO_RESOURCES = {"accelerator_memory": "0kb", "hbmem": "0kb", "mem": "0kb", "naccelerators": 0}
STATES = {"Transit": "T", "Queued": "Q", "Held": "H", "Waiting": "W", "Running": "R", "Exiting": "E", "Begun": "B"}


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
