"""One process that takes for each step the batch that another run had, as its record says."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec

from commensal import training
from commensal.ring import Place, Replica
from commensal.ring.alone import Alone


class Repeated(Alone):
    """The file REPEAT holds the batch of each step."""

    def begin(self, replica: Replica) -> Place:
        batches: list[int] = json.loads(Path(os.environ["REPEAT"]).read_text())
        place = super().begin(replica)
        return msgspec.structs.replace(place, batch=batches[replica.closed]) if replica.closed < len(batches) else place


def install() -> None:
    """From now on a training that is alone is such a one."""
    if "REPEAT" in os.environ:
        training._ring = lambda folder, seconds, batches: Repeated(folder, seconds)
