"""What the settings mean for a pilot: where it would run, and beside whom. Pure."""

from __future__ import annotations

from commensald.config import Config
from commensald.doctor.facts import Qos, Slurm
from commensald.doctor.settings import setting
from commensald.schedulers.slurm.partitions import Partition, of_pilots


def partition(slurm: Slurm, config: Config) -> Partition | None:
    """The one that pilots are submitted to, if it exists."""
    return of_pilots(dict(slurm.partitions), config.pilots.partition)


def rivals(slurm: Slurm, pilots: Partition) -> tuple[Partition, ...]:
    """The partitions of primary jobs that share nodes with the pilots'."""
    return tuple(each for each in slurm.partitions.values() if each.name != pilots.name and set(each.nodes) & set(pilots.nodes))


def qos(slurm: Slurm, config: Config) -> Qos | None:
    """The one that pilots are submitted with: the configured one, else the owner's default, else Slurm's own."""
    associations = slurm.associations or ()
    default = next((each.default_qos for each in associations if each.user and each.default_qos), "normal")
    return next((each for each in slurm.qos or () if each.name == (config.pilots.qos or default)), None)


def by_qos(slurm: Slurm) -> bool:
    """Preemption goes by quality of service, else by partition."""
    return setting(slurm, "PreemptType") == "preempt/qos"


def grace_seconds(slurm: Slurm, config: Config) -> float:
    """How long a preempted pilot is left running, 0 where it is killed after KillWait."""
    found = qos(slurm, config) if by_qos(slurm) else partition(slurm, config)
    return found.grace_seconds if found else 0.0
