"""slurm.conf for several slurmd on one host: primary jobs preempt scavenger jobs by partition (slurm.conf(5), preempt.html). Pure."""

from __future__ import annotations

from slurm_cluster.settings import Layout, Settings

CPUS_PER_NODE = 4
MEMORY_MIB_PER_NODE = 4000
CRED_EXPIRE_SECONDS = 5
"""A requeued job waits this long and as much again (research: reason BeginTime); Slurm's default is 120."""


def slurm_conf(layout: Layout, settings: Settings) -> str:
    """The whole file."""
    return "\n".join([*_daemons(layout, settings), *_scheduling(settings), *_nodes(settings), *_partitions(settings)]) + "\n"


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
    backfill = "bf_interval=2,bf_window=2880,bf_resolution=10,sched_interval=2,batch_sched_delay=1,preempt_youngest_first"
    return [
        f"KillWait={kill_wait}",
        "SchedulerType=sched/backfill",
        f"SchedulerParameters={backfill}",
        "SlurmctldParameters=preempt_send_user_signal",  # 22.05; later versions have PreemptParameters=send_user_signal
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
