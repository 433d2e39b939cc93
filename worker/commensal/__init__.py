"""Commensal's worker: what a training script imports.

Names are loaded on first use, so that the daemon and the launcher, which want only :mod:`commensal.messages`, import neither torch nor MPI.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

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


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
