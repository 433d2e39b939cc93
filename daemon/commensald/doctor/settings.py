"""Single lines of ``scontrol show config``. Pure."""

from __future__ import annotations

from commensald.doctor.facts import Slurm
from commensald.schedulers.slurm.settings import parameter
from commensald.schedulers.slurm.times import TimeError, measure


def setting(slurm: Slurm, key: str) -> str:
    """A line of ``scontrol show config``; "" where it is not set."""
    value = slurm.settings.get(key, "")
    return "" if value in ("(null)", "N/A") else value


def seconds(slurm: Slurm, key: str) -> float:
    """A duration; 0 where there is none, or no end."""
    try:
        return max(measure(setting(slurm, key)) or 0.0, 0.0)
    except TimeError:
        return 0.0


def word(slurm: Slurm, key: str, name: str) -> bool:
    """Whether a list of parameters has ``name``."""
    return parameter(slurm.settings, key, name) is not None
