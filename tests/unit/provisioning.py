"""The published profile of spotDNN (config/examples/plan-resnet110.toml), for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from commensald.allocate.provision.loss import Loss
from commensald.allocate.provision.pace import Goal, Kind, Pace
from commensald.allocate.provision.profile_file import load_profile
from commensald.allocate.provision.spotdnn import ParameterServer, Server

EXAMPLES = Path(__file__).resolve().parents[2] / "config" / "examples"
RESNET = load_profile(EXAMPLES / "plan-resnet110.toml").profile
SERVER = Server(parameters=11.5, request=142, bandwidth=1200, pcie=10000, a1=0.8, b1=-1.92)
LOSS = Loss(g1=876.5, g2=-0.2, g3=2507.6, g5=0.5, form="sqrt")
GOAL = Goal(loss=0.8, deadline_seconds=2600.0)


def cluster(*kinds: tuple[float, float, int], server: Server = SERVER, quota: int = 5) -> ParameterServer:
    """A parameter server for kinds of (batch, seconds, gpus)."""
    made = (Kind(name=f"k{n}", quota=quota, charge=1.0, batch=b, seconds=s, gpus=g) for n, (b, s, g) in enumerate(kinds))
    return ParameterServer(tuple(made), server)


def pace(batch: float = 100.0, members: float = 1.0, spread: float = 0.0, seconds: float = 1.0, times: int = 1) -> Pace:
    """The same cluster, ``times`` over."""
    return Pace(*(np.full(times, value) for value in (seconds, batch, members, spread)))
