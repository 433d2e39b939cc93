"""slurm.conf for several slurmd on one host: primary jobs preempt scavenger jobs by partition (slurm.conf(5), preempt.html). Pure."""

from __future__ import annotations

from slurm_cluster.settings import Layout, Settings

CPUS_PER_NODE = 4
MEMORY_MIB_PER_NODE = 4000
NO_CGROUPS, USER_SIGNAL = (23, 11), (23, 11)
"""The releases since which ``CgroupPlugin=disabled`` and ``PreemptParameters=send_user_signal`` are understood."""
CRED_EXPIRE_SECONDS = 5
"""A requeued job waits this long and as much again (research: reason BeginTime); Slurm's default is 120."""


def slurm_conf(layout: Layout, settings: Settings) -> str:
    """The whole file."""
    parts = [*_daemons(layout, settings), *_of_release(layout, settings), *_scheduling(settings), *_nodes(settings), *_partitions(settings)]
    return "\n".join(parts) + "\n"


def cgroup_conf(settings: Settings) -> str:
    """Empty where "disabled" is no word yet: then Slurm finds out by itself, and uses nothing of it."""
    return "CgroupPlugin=disabled\n" if settings.release >= NO_CGROUPS else ""


def _of_release(layout: Layout, settings: Settings) -> list[str]:
    """What is spelt otherwise since some release, and where plugins lie that are not the installed ones."""
    signal = ["PreemptParameters=send_user_signal"] if settings.release >= USER_SIGNAL else ["SlurmctldParameters=preempt_send_user_signal"]
    return [*signal, *([f"PluginDir={layout.programs}/plugins"] if layout.programs.exists() else [])]


def _daemons(layout: Layout, settings: Settings) -> list[str]:
    folder = layout.folder
    return [
        "ClusterName=commensal",
        f"SlurmctldHost={settings.host}(127.0.0.1)",
        f"SlurmUser={settings.slurm_user}",
        f"SlurmdUser={settings.user}",
        "AuthType=auth/munge",
        "CredType=cred/munge",
        f"AuthInfo=socket={layout.socket},cred_expire={CRED_EXPIRE_SECONDS}",
        f"SlurmctldPort={settings.ports[0]}",
        f"StateSaveLocation={folder}/state",
        f"SlurmdSpoolDir={folder}/spool/%n",
        f"SlurmctldPidFile={layout.pid_file('slurmctld')}",
        f"SlurmdPidFile={folder}/run/slurmd.%n.pid",
        f"SlurmctldLogFile={layout.log('slurmctld')}",
        f"SlurmdLogFile={folder}/log/slurmd.%n.log",
        "SlurmctldDebug=verbose",
        "SlurmdDebug=verbose",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/none",
        "JobCompType=jobcomp/none",
        "MpiDefault=none",
        "SwitchType=switch/none",
        "ReturnToService=2",
        "SlurmdTimeout=30",
        "SlurmctldTimeout=30",
        "MessageTimeout=10",
        "InactiveLimit=0",
        "MinJobAge=300",
        "SlurmdParameters=config_overrides",  # nodes may claim more than this host has
    ]


def _scheduling(settings: Settings) -> list[str]:
    kill_wait = min(max(settings.grace_seconds, 2), 30)
    # Every second, so that what is measured here is what pilots do and not how seldom Slurm looks.
    backfill = "bf_interval=1,bf_window=2880,bf_resolution=10,sched_interval=2,batch_sched_delay=0,preempt_youngest_first"
    return [
        f"KillWait={kill_wait}",
        "SchedulerType=sched/backfill",
        f"SchedulerParameters={backfill}",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core_Memory",
        "PriorityType=priority/multifactor",
        "PriorityWeightAge=1000",
        "PriorityWeightPartition=10000",
        "PreemptType=preempt/partition_prio",
        "PreemptMode=REQUEUE",
        "JobRequeue=1",
    ]


def _nodes(settings: Settings) -> list[str]:
    common = f"NodeHostname={settings.host} NodeAddr=127.0.0.1 CPUs={CPUS_PER_NODE} RealMemory={MEMORY_MIB_PER_NODE} State=UNKNOWN"
    return [f"NodeName={name} Port={port} {common}" for name, port in zip(settings.nodes, settings.ports[1:], strict=True)]


def _partitions(settings: Settings) -> list[str]:
    nodes = f"Nodes={','.join(settings.nodes)} State=UP DefaultTime=30"
    return [
        f"PartitionName=primary {nodes} Default=YES PriorityTier=10 PreemptMode=OFF MaxTime=2-0",
        f"PartitionName=scavenger {nodes} PriorityTier=1 PreemptMode=REQUEUE GraceTime={settings.grace_seconds} MaxTime=1-0",
    ]
