"""Jobs and clusters of the elastic-batch simulation; all figures are assumptions, made before the first run and not tuned since.

MASCOTS'20 profiles real networks (its scalability analyser); those tables are not published. Ours are synthetic: four kinds of jobs by the
balance of computing and communicating, with the parameter sizes of four real networks (research/papers.md 2.3), seconds for 64 samples on
one device of the order of a P100's, a fifth of which does not shrink with the batch, and a ring over 10 Gbit/s Ethernet with 0.5 ms a hop.
Batches go from 32 to 512, a device holds 64 samples, a job uses 10 devices at most.

A job's length on one device, at 64 samples a step, is log-uniform between 15 minutes and 4 hours; arrivals are Poisson; the load is what
arrives, by those lengths, over what all devices can do: light 0.5, heavy 1, extreme 2.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from commensald.allocate.elastic import ElasticBatch
from commensald.allocate.throughput import Profile
from commensald.decision import Demand

LOADS = {"light": 0.5, "heavy": 1.0, "extreme": 2.0}
SMALLEST, LARGEST, PER_DEVICE, MOST_DEVICES = 32, 512, 64, 10
KINDS = {"compute": (98.0, 0.50), "communication": (574.0, 0.20), "balanced": (336.0, 0.60), "light": (11.5, 0.10)}
"""Megabytes of parameters, seconds for 64 samples on one device."""
SHORTEST_SECONDS, LONGEST_SECONDS = 15 * 60.0, 4 * 3600.0
_BYTES_PER_SECOND, _HOP_SECONDS, _FIXED_PART = 1.25e9, 5e-4, 0.2
_MEAN_SECONDS = (LONGEST_SECONDS - SHORTEST_SECONDS) / math.log(LONGEST_SECONDS / SHORTEST_SECONDS)


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One run, but for its policy and its seed."""

    devices: int
    load: str
    drop: bool
    hours: float
    interval_seconds: float
    restart_seconds: float
    noise_scale: float | None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it arrives; ``work`` is in samples, ``random_batch`` what its owner would have fixed."""

    name: str
    arrival: float
    work: float
    times: Profile
    random_batch: int

    def demand(self, batch: tuple[int, int], setting: Setting, *, accumulate: bool) -> Demand:
        """As the allocator sees it, with batches from the first to the second of ``batch``.

        What a device does not hold takes more devices, or, with ``accumulate``, several rounds.
        """
        elastic = ElasticBatch(
            least=batch[0],
            most=batch[1],
            times=msgspec.structs.replace(self.times, at_once=PER_DEVICE) if accumulate else self.times,
            per_device=None if accumulate else PER_DEVICE,
            initial=PER_DEVICE,
            noise_scale=setting.noise_scale,
        )
        return Demand(training=self.name, owner="", max_nodes=MOST_DEVICES, elastic=elastic, stall_seconds=setting.restart_seconds)


def profile(megabytes: float, seconds: float) -> Profile:
    """The tables of one kind."""
    samples = (1, 8, 16, 32, 64)
    wire = 2e6 * megabytes / _BYTES_PER_SECOND
    return Profile(
        processing=tuple((float(m), seconds * (_FIXED_PART + (1 - _FIXED_PART) * m / PER_DEVICE)) for m in samples),
        communication=tuple((k, wire * (k - 1) / k + 2 * (k - 1) * _HOP_SECONDS) for k in range(1, MOST_DEVICES + 1)),
    )


def workload(devices: int, load: float, hours: float, seed: int) -> tuple[Job, ...]:
    """Jobs in the order of their arrival."""
    random = np.random.default_rng(seed)
    tables = [profile(*figures) for figures in KINDS.values()]
    arrivals = np.cumsum(
        random.exponential(_MEAN_SECONDS / (load * devices), size=int(4 * load * devices * hours * 3600 / _MEAN_SECONDS) + 50)
    )
    return tuple(
        _job(index, float(at), tables[random.integers(len(tables))], random) for index, at in enumerate(arrivals[arrivals < hours * 3600])
    )


def _job(index: int, arrival: float, times: Profile, random: np.random.Generator) -> Job:
    seconds = math.exp(random.uniform(math.log(SHORTEST_SECONDS), math.log(LONGEST_SECONDS)))
    rate = float(times.rate(1, PER_DEVICE))
    return Job(
        name=f"j{index:05d}", arrival=arrival, work=rate * seconds, times=times, random_batch=int(random.integers(SMALLEST, LARGEST + 1))
    )
