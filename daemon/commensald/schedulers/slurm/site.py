"""What of a site is read rarely: its configuration, its partitions, how busy the controller is and what its clock says."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping

import msgspec

from commensald.schedulers import SchedulerError
from commensald.schedulers.runner import CommandTimeoutError
from commensald.schedulers.slurm import qos, sdiag, settings
from commensald.schedulers.slurm.partitions import Partition, of_pilots, partitions
from commensald.schedulers.slurm.queries import Queries

log = logging.getLogger(__name__)
CLOCK_SECONDS = 1.0
"""Slurm shows its clock in whole seconds: a smaller difference from ours is none."""


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """One reading; ``pilots`` is the partition that pilots go to, ``grace_seconds`` what a preempted one has."""

    config: Mapping[str, str]
    pilots: Partition | None
    grace_seconds: float
    load: sdiag.Load | None
    ahead_seconds: float
    """The controller's clock less ours."""


async def read(queries: Queries, partition: str | None, pilot_qos: str | None) -> Site:
    """The site as it is now, for pilots of this partition (``None``: the default one) and quality of service. Raises SchedulerError."""
    config, ahead_seconds = await _config(queries)
    load, records = await asyncio.gather(_load(queries), queries.records("partitions", config))
    pilots = of_pilots(partitions(records), partition)
    grace_seconds = await _grace(queries, config, pilots, pilot_qos)
    return Site(config=config, pilots=pilots, grace_seconds=grace_seconds, load=load, ahead_seconds=ahead_seconds)


async def _config(queries: Queries) -> tuple[Mapping[str, str], float]:
    """The configuration, and how far the controller's clock is ahead of ours."""
    asked = time.time()
    config = await queries.config()
    answered = settings.taken(config)
    ahead = 0.0 if answered is None else answered + CLOCK_SECONDS / 2 - (asked + time.time()) / 2
    return config, ahead if abs(ahead) > CLOCK_SECONDS else 0.0


async def _load(queries: Queries) -> sdiag.Load | None:
    """``None`` where this account may not ask: a courtesy less, no reason to know nothing of the cluster."""
    try:
        return await queries.load()
    except CommandTimeoutError:
        raise
    except SchedulerError as error:
        log.info("how busy the controller is cannot be read: %s", error)
        return None


async def _grace(queries: Queries, config: Mapping[str, str], pilots: Partition | None, pilot_qos: str | None) -> float:
    """0, the safe answer, where nobody says."""
    if not qos.decide_preemption(config):
        return pilots.grace_seconds if pilots is not None else 0.0
    return (await queries.qos_grace()).get(pilot_qos, 0.0) if pilot_qos is not None else 0.0
