"""All that a check may look at: the site as it was found, frozen."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from commensald.config import Config
from commensald.schedulers.pbs import site as pbs
from commensald.schedulers.slurm.partitions import Partition


class Qos(msgspec.Struct, frozen=True, kw_only=True):
    """A quality of service of ``sacctmgr show qos``; ``limits`` has the columns that are set, by sacctmgr's names."""

    name: str
    preempts: frozenset[str] = frozenset()
    preempt_modes: frozenset[str] = frozenset()
    grace_seconds: float = 0.0
    exempt_seconds: float = 0.0
    usage_factor: float = 1.0
    limits: Mapping[str, str] = {}


class Association(msgspec.Struct, frozen=True, kw_only=True):
    """What the owner is allowed through one account; the account's own row has no ``user``."""

    account: str
    user: str = ""
    default_qos: str = ""
    limits: Mapping[str, str] = {}


class Backfill(msgspec.Struct, frozen=True, kw_only=True):
    """Of ``sdiag``: how long a mean backfill cycle takes, and how many jobs it looks at."""

    cycle_seconds: float
    depth: float


class Slurm(msgspec.Struct, frozen=True, kw_only=True):
    """What Slurm says of itself; ``None`` where it would not say. ``settings`` is ``scontrol show config``."""

    version: str
    settings: Mapping[str, str]
    partitions: Mapping[str, Partition]
    qos: tuple[Qos, ...] | None = None
    associations: tuple[Association, ...] | None = None
    operator: bool = False
    """The owner may see everything (AdminLevel Operator or Administrator, or SlurmUser)."""
    backfill: Backfill | None = None
    clock_ahead_seconds: float | None = None
    """The controller's clock less ours."""
    refusal: str | None = None
    """What ``sbatch --test-only`` said to a pilot that it would not take."""
    oversubscribe: Mapping[str, str] = {}
    """Partition -> its OverSubscribe."""
    hosts: Mapping[str, str] = {}
    """Node -> its address, of those that were tried."""


class Pbs(msgspec.Struct, frozen=True, kw_only=True):
    """What PBS says of itself; ``repaired`` and ``unreadable`` are the jobs of which qstat's JSON was none."""

    site: pbs.Site
    jobs: int = 0
    repaired: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    hosts: Mapping[str, str] = {}
    """Node -> its address, of those that were tried."""


class Ring(msgspec.Struct, frozen=True, kw_only=True):
    """A ring that was formed to try MPI: ``error`` says why it could not be."""

    seconds: float | None = None
    error: str | None = None


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """This host, and what can be reached from it."""

    address: str
    """At which compute nodes are to reach the daemon."""
    folder_type: str
    """File system of the pilots' folder."""
    folder_shared: bool
    unreachable: tuple[str, ...] = ()
    """Nodes whose slurmd could not be reached."""
    tried: int = 0
    addresses: frozenset[str] = frozenset()
    """This host's own."""
    pyslurm: str | None = None
    """Its version, if it is installed."""
    ring: Ring | None = None
    """``None``: not tried."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """A job that was run where pilots go: seconds from its start to its first process, and from its last one until its node was free."""

    node: str = ""
    error: str | None = None
    folder_seen: bool = False
    reached: bool = False
    """It connected to this host."""
    start_seconds: float | None = None
    end_seconds: float | None = None
    ring: Ring | None = None


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """Everything. The configured scheduler's facts are ``None`` where it does not answer, and ``silence`` says why."""

    config: Config
    owner: str
    host: Host
    slurm: Slurm | None = None
    pbs: Pbs | None = None
    silence: str = ""
    trial: Trial | None = None
    """``None``: none was run."""
    standing: int = 0
    """Pilots that may wait in the queue without a node of their own."""
