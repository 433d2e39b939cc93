"""The controller's configuration (``scontrol show config``) and what follows from it for pilots: facts of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping

from commensald.cluster import Facts
from commensald.schedulers.slurm.partitions import Partition
from commensald.schedulers.slurm.records import UnreadableError
from commensald.schedulers.slurm.times import instant, measure

PRODUCT = "slurm"
BF_RESOLUTION_SECONDS = 60.0
BF_INTERVAL_SECONDS = 30.0
"""Slurm's own defaults of SchedulerParameters (slurm.conf(5))."""

_AS_OF = "Configuration data as of "
_SHOWN = {
    "preempt_type": "PreemptType",
    "preempt_mode": "PreemptMode",
    "kill_wait": "KillWait",
    "cluster": "ClusterName",
    "private_data": "PrivateData",
    "scheduler_parameters": "SchedulerParameters",
}


def parse(text: str, mark: str) -> Mapping[str, str]:
    """Key and value of each line; the time at its head is ``AS_OF``, without ``mark``. Raises UnreadableError."""
    lines = text.split("\n")
    found = {key.strip(): value.strip() for key, equals, value in (line.partition("=") for line in lines) if equals}
    head = next((line for line in lines if line.startswith(_AS_OF)), None)
    if head is None or "SLURM_VERSION" not in found or not text.endswith("\n"):
        raise UnreadableError("no whole configuration", text[:300])
    return {**found, "AS_OF": head.removeprefix(_AS_OF).strip().removesuffix(mark)}


def taken(config: Mapping[str, str]) -> float | None:
    """When the controller made this answer, by its own clock, to a second."""
    return instant(config["AS_OF"])


def parameter(config: Mapping[str, str], key: str, name: str) -> str | None:
    """The value of ``name`` in a list of parameters (``bf_interval=30,bf_continue``); a bare word has the value ""."""
    words = dict(word.partition("=")[::2] for word in config.get(key, "").split(","))
    return words.get(name)


def seconds(config: Mapping[str, str], name: str, otherwise: float) -> float:
    """A number of seconds among SchedulerParameters."""
    value = parameter(config, "SchedulerParameters", name)
    return float(value) if value is not None and value.isdecimal() else otherwise


def sends_user_signal(config: Mapping[str, str]) -> bool:
    """Whether a preempted job gets the signal of its ``--signal`` as its grace begins.

    ``SlurmctldParameters=preempt_send_user_signal`` up to 23.02, ``PreemptParameters=send_user_signal`` later.
    """
    return (
        parameter(config, "SlurmctldParameters", "preempt_send_user_signal") is not None
        or parameter(config, "PreemptParameters", "send_user_signal") is not None
    )


def facts(config: Mapping[str, str], partition: Partition | None, grace_seconds: float, measured: Mapping[str, str]) -> Facts:
    """What a snapshot says of the scheduler; ``partition`` and grace are the pilots', ``measured`` goes into ``extra`` as it is."""
    kill_wait = measure(config.get("KillWait", "30 sec"))
    shown = {name: config[key] for name, key in _SHOWN.items() if key in config}
    shown |= {
        "kill_wait_seconds": "" if kill_wait is None else f"{kill_wait:g}",
        "bf_interval_seconds": f"{seconds(config, 'bf_interval', BF_INTERVAL_SECONDS):g}",
        "preempt_send_user_signal": "yes" if sends_user_signal(config) else "no",
    }
    if partition is not None:
        shown |= {
            "partition": partition.name,
            "partition_preempt_mode": ",".join(sorted(partition.preempt_modes)),
            "partition_tier": str(partition.tier),
            "partition_max_seconds": "" if partition.most_seconds is None else f"{partition.most_seconds:g}",
        }
    return Facts(
        product=PRODUCT,
        version=config["SLURM_VERSION"],
        grace_seconds=grace_seconds,
        backfill_resolution_seconds=seconds(config, "bf_resolution", BF_RESOLUTION_SECONDS),
        whole_minutes=True,
        extra={**shown, **measured},
    )
