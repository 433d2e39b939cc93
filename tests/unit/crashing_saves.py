"""Saves in a folder by processes that are killed at every stage: ``python crashing_saves.py FOLDER``.

Step 1 is saved whole. Then, for k = 0, 1, ..., a fork saves step 2 and is killed at the k-th boundary of a write, flush or rename, until
one gets through. After each, one line: k, the newest step that loads, and whether its numbers are its own.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from commensal import checkpoint, slices, storage
from commensal.messages import Generation
from commensal.state import flatten

GENERATION = Generation(1, 1)


def save(folder: Path, step: int) -> None:
    """Two members' slices of a state whose every number is ``step``, then the manifest."""
    header, tensors = flatten({"weights": torch.full((3000,), float(step)), "step": step})
    taken = checkpoint.Snapshot(step=step, header=header, tensors=tensors, stall_seconds=0.0)
    for rank in range(2):
        checkpoint.write_slice(taken, rank, 2, GENERATION, folder)
    checkpoint.try_manifest(folder, step, GENERATION, 2)


class Killer:
    """Kills this process at the k-th boundary it sees."""

    def __init__(self, left: int) -> None:
        self.left = left

    def boundary(self) -> None:
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1

    def around(self, function: Callable[..., object]) -> Callable[..., object]:
        def wrapped(*arguments: object) -> object:
            self.boundary()
            result = function(*arguments)
            self.boundary()
            return result

        return wrapped


def killed(folder: Path, k: int) -> bool:
    """Save step 2 in a fork; whether it was killed."""
    child = os.fork()
    if child == 0:
        killer = Killer(k)
        storage.os.fsync = killer.around(os.fsync)  # type: ignore[assignment]
        storage.os.rename = killer.around(os.rename)  # type: ignore[assignment]
        slices.CHUNK_BYTES = 4096
        chunks = slices._chunks
        slices._chunks = lambda tensors, pieces: (killer.boundary() or chunk for chunk in chunks(tensors, pieces))  # type: ignore[assignment,func-returns-value]
        save(folder, 2)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def main() -> None:
    """All stages."""
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    save(folder, 1)
    again, k = True, 0
    while again:
        again = killed(folder, k)
        found = checkpoint.newest(folder)
        assert found is not None
        tensors = checkpoint.load(found)[1]
        print(k, found.step, bool((tensors[0] == found.step).all()), flush=True)
        if found.step == 2 and again:
            (found.path / checkpoint.MANIFEST).unlink()
        k += 1


if __name__ == "__main__":
    main()
