"""Finding the facts of a PBS out."""

from __future__ import annotations

import pwd
from collections.abc import Mapping

from commensald.cluster import NodeState
from commensald.config import Config
from commensald.doctor import host
from commensald.doctor.facts import Host, Pbs, Site
from commensald.doctor.pbs_probe import PbsJobs
from commensald.doctor.probe import probe
from commensald.schedulers import SchedulerError
from commensald.schedulers.pbs import commands
from commensald.schedulers.pbs.queries import Queries
from commensald.schedulers.pbs.records import Record
from commensald.schedulers.pbs.site import read
from commensald.schedulers.pbs.states import node_state
from commensald.schedulers.runner import Runner
from commensald.service import policy

MOM_PORT = 15_002
DEAD = (NodeState.DOWN, NodeState.UNKNOWN)


async def gather(config: Config, owner: str, here: Host, *, trial: bool) -> Site:
    """Everything that the checks want to know; ``trial`` submits a job."""
    asked = config.scheduler
    runner, environment = Runner(asked.command_seconds), commands.environment(asked.path, asked.pbs_conf, pwd.getpwnam(owner).pw_dir)
    queries = Queries(runner, environment)
    try:
        site, reading, vnodes = await read(queries, config.pilots.partition), await queries.jobs(), await queries.nodes()
    except SchedulerError as error:
        return Site(config=config, owner=owner, host=here, silence=str(error))
    tried = host.spread(listening(vnodes))
    return Site(
        config=config,
        owner=owner,
        host=await host.reach(here, tried),
        pbs=Pbs(
            site=site,
            jobs=len(reading.records) + len(reading.unreadable),
            repaired=reading.repaired,
            unreadable=reading.unreadable,
            hosts={name: host.resolved(where) for name, (where, _) in tried.items()},
        ),
        standing=policy(config).standing,
        trial=await probe(config, here.address, PbsJobs(config, runner, environment)) if trial else None,
    )


def listening(vnodes: Mapping[str, Record]) -> dict[str, tuple[str, int]]:
    """Where the MOM of each host that should answer listens. Pure."""
    up = (each for each in vnodes.values() if "Mom" in each and node_state(each.get("state", ""))[0] not in DEAD)
    return {each["Mom"]: (each["Mom"].partition(",")[0], _port(each)) for each in up}


def _port(record: Record) -> int:
    text = record.get("Port", "")
    return int(text) if text.isdecimal() and len(text) < 6 else MOM_PORT
