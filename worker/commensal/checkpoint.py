"""Checkpoints on disk: each member writes its slice, whoever sees all of them for a settled step writes the manifest.

Any number of members reads what any other wrote. Nothing is pickled.
"""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec
import torch
from safetensors import SafetensorError

from commensal import slices
from commensal.manifest import MANIFEST, CheckpointError, Found, Record, assemble, complete, home, stem, verify
from commensal.messages import Generation
from commensal.ring import Replica
from commensal.state import StateError, blank
from commensal.storage import make_folder, try_folder, write_whole

KEEP = 2


class SaveError(RuntimeError):
    """A checkpoint could not be written; the previous one is untouched. The OSError is its cause."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of a state in host memory. ``stall_seconds``: how long the training stood still for it."""

    step: int
    header: bytes
    tensors: Sequence[torch.Tensor]
    stall_seconds: float


def check_folder(folder: Path) -> None:
    """Raises SaveError when nothing could be saved in this folder. A missing one is not made: its name may be misspelt."""
    if not folder.is_dir():
        raise SaveError(f"folder={str(folder)!r}: no such folder")
    try:
        try_folder(folder)
    except OSError as error:
        raise SaveError(f"folder={str(folder)!r} cannot be written: {error.strerror}") from error


def snapshot(replica: Replica) -> Snapshot:
    """Copy the state to host memory: the only part of a save for which a training stands still."""
    began = time.monotonic()
    header, tensors = replica.export()
    copies = [tensor.clone() for tensor in tensors]
    return Snapshot(step=replica.closed, header=header, tensors=copies, stall_seconds=time.monotonic() - began)


def write_slice(taken: Snapshot, rank: int, size: int, generation: Generation, folder: Path) -> Record:
    """Write one member's slice and its record; any thread. Raises SaveError and leaves no partial file."""
    path = home(folder, taken.step) / f"{stem(generation, rank, size)}.safetensors"
    pieces = slices.cut([(tensor.numel(), tensor.element_size()) for tensor in taken.tensors], size)[rank]
    try:
        make_folder(path.parent)
        size_bytes, sha256 = write_whole(path, lambda stream: slices.write(stream, taken.tensors, pieces))
        record = Record(
            step=taken.step,
            generation=generation,
            rank=rank,
            size=size,
            file=path.name,
            size_bytes=size_bytes,
            sha256=sha256,
            pieces=pieces,
            header=taken.header.decode() if rank == 0 else None,
        )
        write_whole(path.with_name(f"{stem(generation, rank, size)}.json"), _writer(msgspec.json.encode(record)))
    except OSError as error:
        _drop_slice(path)
        raise SaveError(f"step {taken.step} could not be saved in {path.parent}: {error}") from error
    return record


def try_manifest(folder: Path, step: int, generation: Generation, size: int) -> Path | None:
    """Write the manifest of a settled step if all ``size`` records are there, then drop old checkpoints; ``None`` if not.

    The bytes are the same whoever writes it, so it does not matter if several do. Raises SaveError.
    """
    path = home(folder, step) / MANIFEST
    names = [f"{stem(generation, rank, size)}.json" for rank in range(size)]
    if not all(path.with_name(name).is_file() for name in names):
        return None
    try:
        write_whole(path, _writer(assemble(step, generation, [(name, path.with_name(name).read_bytes()) for name in names])))
    except OSError as error:
        if size == 1 and not path.exists():
            shutil.rmtree(path.parent, ignore_errors=True)
        raise SaveError(f"the manifest of step {step} could not be written in {path.parent}: {error}") from error
    _drop_old(folder)
    return path


def listed(folder: Path) -> tuple[str, ...]:
    """The names of the checkpoints that have a manifest, oldest first; not verified."""
    return tuple(path.name for path in complete(folder))


def newest(folder: Path) -> Found | None:
    """The newest checkpoint that is complete and whose bytes are as they were written; damaged ones are skipped with a warning."""
    for path in reversed(complete(folder)):
        try:
            return verify(path)
        except CheckpointError as error:
            warnings.warn(f"skipping a damaged checkpoint: {error}", stacklevel=2)
    return None


def find(folder: Path, step: int) -> Found:
    """The checkpoint of one step. Raises CheckpointError when it is missing or damaged."""
    return verify(home(folder, step))


def load(found: Found) -> tuple[bytes, list[torch.Tensor]]:
    """The state: what Replica.load takes. Raises CheckpointError when the slices do not make it up."""
    try:
        header = (found.records[0].header or "").encode()
        tensors = blank(header)
        filled = sum(slices.read(found.path / record.file, record.pieces, tensors) for record in found.records)
    except (OSError, SafetensorError, StateError, ValueError, LookupError) as error:
        raise CheckpointError(f"{found.path}: {error}") from error
    if filled != sum(tensor.numel() for tensor in tensors):
        raise CheckpointError(f"{found.path}: the slices hold {filled} elements of {sum(tensor.numel() for tensor in tensors)}")
    return header, tensors


def _writer(content: bytes) -> Callable[[BinaryIO], int]:
    return lambda stream: stream.write(content)


def _drop_slice(path: Path) -> None:
    """Give back the space of a slice without a record; one with a record may belong to a checkpoint already."""
    with suppress(OSError):
        if not path.with_suffix(".json").exists():
            path.unlink(missing_ok=True)
            path.parent.rmdir()


def _drop_old(folder: Path) -> None:
    """Keep the KEEP newest checkpoints; all else before the newest goes, manifest first, so that no half of one looks complete."""
    kept = complete(folder)[-KEEP:]
    for path in sorted((folder / "checkpoints").glob("step-*")):
        if kept and path < kept[-1] and path not in kept:
            (path / MANIFEST).unlink(missing_ok=True)
            shutil.rmtree(path, ignore_errors=True)
