"""Commensal's worker: what a training script imports.

In a pilot this installs the handlers of SIGTERM and SIGUSR1 before torch is imported. Names are loaded on first use, so that the daemon and
the launcher, which want only :mod:`commensal.messages`, import neither torch nor MPI.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

from commensal import deadline

if TYPE_CHECKING:
    from commensal.checkpoint import SaveError
    from commensal.manifest import CheckpointError
    from commensal.refusals import CrossSampleStateError
    from commensal.settling import StepInfo
    from commensal.state import StateError
    from commensal.training import Training

__all__ = ["CheckpointError", "CrossSampleStateError", "SaveError", "StateError", "StepInfo", "Training"]

_HOMES = {
    "CheckpointError": "commensal.manifest",
    "CrossSampleStateError": "commensal.refusals",
    "SaveError": "commensal.checkpoint",
    "StateError": "commensal.state",
    "StepInfo": "commensal.settling",
    "Training": "commensal.training",
}

if "COMMENSAL_MEMBER" in os.environ:
    deadline.install()


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
