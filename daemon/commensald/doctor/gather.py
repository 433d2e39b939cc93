"""Finding the facts out: what Slurm says, and with :mod:`host` and :mod:`probe` everything else."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import msgspec

from commensald.config import Config
from commensald.doctor import host, pbs_gather, replies
from commensald.doctor.facts import Association, Backfill, Qos, Site, Slurm, Trial
from commensald.doctor.probe import SlurmJobs, probe
from commensald.schedulers import PilotSpec, SchedulerError
from commensald.schedulers.runner import Runner
from commensald.schedulers.slurm import commands, settings, text
from commensald.schedulers.slurm.partitions import partitions
from commensald.schedulers.slurm.records import Record
from commensald.service import policy

PROBE = PilotSpec(uuid="doctor", argv=("true",), folder="/tmp", time_limit=60.0)


async def gather(config: Config, owner: str, *, ring: bool, trial: bool) -> Site:
    """Everything that the checks want to know; ``trial`` submits a job. Raises InputError."""
    here = await host.look(config, ring=ring)
    if config.scheduler.kind == "pbs":
        return await pbs_gather.gather(config, owner, here, trial=trial)
    if config.scheduler.kind != "slurm":
        return Site(config=config, owner=owner, host=here)
    asked = _Questions(config, owner)
    try:
        slurm, nodes = await asked.slurm()
    except SchedulerError as error:
        return Site(config=config, owner=owner, host=here, silence=str(error))
    tried = host.spread(nodes)
    return Site(
        config=config,
        owner=owner,
        host=await host.reach(here, tried),
        slurm=msgspec.structs.replace(slurm, hosts={name: host.resolved(where) for name, (where, _) in tried.items()}),
        standing=policy(config).standing,
        trial=await asked.trial(here.address) if trial else None,
    )


class _Questions:
    """What Slurm is asked, each command once."""

    def __init__(self, config: Config, owner: str) -> None:
        self._config, self._owner = config, owner
        self._runner = Runner(config.scheduler.command_seconds)
        self._environment = commands.environment(config.scheduler.path, config.scheduler.slurm_conf, commands.time_format(""))

    async def slurm(self) -> tuple[Slurm, dict[str, tuple[str, int]]]:
        """All that Slurm says, and where its nodes listen. Raises SchedulerError where it says nothing."""
        before = time.time()
        found = settings.parse(await self._ask(commands.CONFIG), "")
        ahead = skew((settings.taken(found) or before) - before, time.time() - before)
        rows = list(text.split(await self._ask(commands.PARTITIONS), "PartitionName"))
        nodes = list(text.split(await self._ask(commands.NODES), "NodeName"))
        qos, own = await self._accounting(found)
        slurm = Slurm(
            version=found["SLURM_VERSION"],
            settings=found,
            partitions=partitions(rows),
            oversubscribe={row["PartitionName"]: row.get("OverSubscribe", "NO") for row in rows},
            qos=qos,
            associations=own,
            operator=await self._operator(found),
            backfill=await self._backfill(),
            clock_ahead_seconds=ahead,
            refusal=await self._refusal(),
        )
        return slurm, listening(nodes, found.get("SlurmdPort", ""))

    async def trial(self, address: str) -> Trial:
        """A job where pilots go."""
        return await probe(self._config, address, SlurmJobs(self._config, self._runner, self._environment))

    async def _ask(self, argv: Sequence[str], stdin: str = "") -> str:
        return await self._runner.run(argv, self._environment, stdin)

    async def _accounting(self, found: Mapping[str, str]) -> tuple[tuple[Qos, ...] | None, tuple[Association, ...] | None]:
        try:
            qos = replies.qos(await self._ask(("sacctmgr", "--parsable2", "show", "qos")))
            rows = await self._ask(("sacctmgr", "--parsable2", "show", "assoc"))
        except SchedulerError:
            return None, None
        return qos, replies.associations(rows, self._owner, found.get("ClusterName", ""), self._config.pilots.account)

    async def _operator(self, found: Mapping[str, str]) -> bool:
        if self._owner in ("root", found.get("SlurmUser", "").partition("(")[0]):
            return True
        try:
            return replies.operator(await self._ask(("sacctmgr", "--parsable2", "show", "user", self._owner)))
        except SchedulerError:
            return False

    async def _backfill(self) -> Backfill | None:
        try:
            return replies.backfill(await self._ask(commands.SDIAG))
        except SchedulerError:
            return None

    async def _refusal(self) -> str | None:
        pilots = self._config.pilots
        spec = msgspec.structs.replace(PROBE, partition=pilots.partition, qos=pilots.qos, account=pilots.account)
        try:
            await self._ask((*commands.sbatch(spec, 60.0), "--test-only"), "#!/bin/sh\ntrue\n")
            return None
        except SchedulerError as error:
            return replies.refusal(error.text or str(error))


def listening(nodes: Sequence[Record], usual_port: str) -> dict[str, tuple[str, int]]:
    """Where each node that should answer listens."""
    found = {each["NodeName"]: replies.address(each, usual_port) for each in nodes if answers(each.get("State", ""))}
    return {name: where for name, where in found.items() if where is not None}


def answers(state: str) -> bool:
    """Whether a node in this state has a slurmd that runs."""
    return not any(word in state for word in ("DOWN", "FUTURE", "POWER", "*", "UNKNOWN"))


def skew(ahead: float, took: float) -> float:
    """Seconds by which the controller's clock, told in whole seconds, is certainly ahead (or behind, if negative)."""
    return max(ahead - took, 0.0) + min(ahead + 1.0, 0.0)
