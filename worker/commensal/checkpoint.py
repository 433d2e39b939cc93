"""Checkpoints on disk: each member writes its slice, whoever sees all of them for a settled step writes the manifest.

Layout below the training's folder::

    checkpoints/step-000000000042/g1.7-2-of-3.safetensors   bytes of rank 2 of 3 in generation 1.7
                                  g1.7-2-of-3.json          its record: size, SHA-256, pieces; rank 0's holds the state's header
                                  manifest.json             names the records; a checkpoint without it does not exist

Names carry the generation, so what a refused generation wrote is never taken for another's. Any number of
members reads what any other wrote.
"""

from __future__ import annotations

import hashlib
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
from commensal.messages import Generation
from commensal.ring import Replica
from commensal.slices import Piece
from commensal.state import StateError, blank
from commensal.storage import make_folder, try_folder, write_whole

MANIFEST = "manifest.json"
KEEP = 2


class CheckpointError(RuntimeError):
    """A checkpoint is missing or damaged."""


class SaveError(RuntimeError):
    """A checkpoint could not be written; the previous one is untouched. The OSError is its cause."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of a state in host memory. ``stall_seconds``: how long the training stood still for it."""

    step: int
    header: bytes
    tensors: Sequence[torch.Tensor]
    stall_seconds: float


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One member's slice."""

    step: int
    generation: Generation
    rank: int
    size: int
    file: str
    size_bytes: int
    sha256: str
    pieces: tuple[Piece, ...]
    header: str | None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A complete checkpoint: the records by rank with the SHA-256 of each."""

    format: int = 1
    step: int
    generation: Generation
    records: tuple[tuple[str, str], ...]
    size_bytes: int


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A complete and verified checkpoint."""

    path: Path
    manifest: Manifest
    records: tuple[Record, ...]

    @property
    def step(self) -> int:
        """Steps in its state."""
        return self.manifest.step


def check_folder(folder: Path) -> None:
    """Raises SaveError when nothing could be saved in this folder."""
    try:
        try_folder(folder)
    except OSError as error:
        raise SaveError(f"folder={str(folder)!r} cannot be written: {error}") from error


def snapshot(replica: Replica) -> Snapshot:
    """Copy the state to host memory: the only part of a save for which a training stands still."""
    began = time.monotonic()
    header, tensors = replica.export()
    copies = [tensor.clone() for tensor in tensors]
    return Snapshot(step=replica.closed, header=header, tensors=copies, stall_seconds=time.monotonic() - began)


def write_slice(taken: Snapshot, rank: int, size: int, generation: Generation, folder: Path) -> Record:
    """Write one member's slice and its record; any thread. Raises SaveError and leaves no partial file."""
    home = _home(folder, taken.step)
    stem = _stem(generation, rank, size)
    pieces = slices.cut([(tensor.numel(), tensor.element_size()) for tensor in taken.tensors], size)[rank]
    path = home / f"{stem}.safetensors"
    try:
        make_folder(home)
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
        write_whole(home / f"{stem}.json", _writer(msgspec.json.encode(record)))
    except OSError as error:
        with suppress(OSError):
            path.unlink(missing_ok=True)
            home.rmdir()
        raise SaveError(f"step {taken.step} could not be saved in {home}: {error}") from error
    return record


def try_manifest(folder: Path, step: int, generation: Generation, size: int) -> Path | None:
    """Write the manifest of a settled step if all ``size`` records are there, then drop old checkpoints; ``None`` if not.

    The bytes are the same whoever writes it, so it does not matter if several do. Raises SaveError.
    """
    home = _home(folder, step)
    names = [f"{_stem(generation, rank, size)}.json" for rank in range(size)]
    if not all((home / name).is_file() for name in names):
        return None
    try:
        texts = [(home / name).read_bytes() for name in names]
        total = sum(msgspec.json.decode(text, type=Record).size_bytes for text in texts)
        digests = tuple((name, hashlib.sha256(text).hexdigest()) for name, text in zip(names, texts, strict=True))
        manifest = Manifest(step=step, generation=generation, records=digests, size_bytes=total)
        write_whole(home / MANIFEST, _writer(msgspec.json.format(msgspec.json.encode(manifest), indent=1)))
    except OSError as error:
        raise SaveError(f"the manifest of step {step} could not be written in {home}: {error}") from error
    _drop_old(folder)
    return home / MANIFEST


def listed(folder: Path) -> tuple[str, ...]:
    """Names of the checkpoints that have a manifest, oldest first; nothing is read."""
    return tuple(home.name for home in _complete(folder))


def newest(folder: Path) -> Found | None:
    """The newest checkpoint that is complete and whose bytes are as they were written; damaged ones are skipped with a warning."""
    for home in reversed(_complete(folder)):
        try:
            return _verify(home)
        except CheckpointError as error:
            warnings.warn(f"skipping a damaged checkpoint: {error}", stacklevel=2)
    return None


def find(folder: Path, step: int) -> Found:
    """The checkpoint of one step. Raises CheckpointError when it is missing or damaged."""
    return _verify(_home(folder, step))


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


def _home(folder: Path, step: int) -> Path:
    return folder / "checkpoints" / f"step-{step:012d}"


def _stem(generation: Generation, rank: int, size: int) -> str:
    return f"g{generation}-{rank}-of-{size}"


def _writer(content: bytes) -> Callable[[BinaryIO], int]:
    return lambda stream: stream.write(content)


def _complete(folder: Path) -> list[Path]:
    return sorted(path.parent for path in (folder / "checkpoints").glob(f"step-*/{MANIFEST}"))


def _verify(home: Path) -> Found:
    try:
        manifest = msgspec.json.decode((home / MANIFEST).read_bytes(), type=Manifest)
        records = tuple(_verify_record(home, name, digest) for name, digest in manifest.records)
    except (OSError, msgspec.DecodeError) as error:
        raise CheckpointError(f"{home}: {error}") from error
    if not records or {manifest.step} != {record.step for record in records} or home != _home(home.parent.parent, manifest.step):
        raise CheckpointError(f"{home}: the manifest belongs to step {manifest.step} and names {len(records)} records")
    return Found(path=home, manifest=manifest, records=records)


def _verify_record(home: Path, name: str, digest: str) -> Record:
    text = (home / name).read_bytes()
    if hashlib.sha256(text).hexdigest() != digest:
        raise CheckpointError(f"{home / name} is not the record that its manifest names")
    record = msgspec.json.decode(text, type=Record)
    with open(home / record.file, "rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != record.sha256:
            raise CheckpointError(f"{home / record.file} does not have the bytes that were written")
    return record


def _drop_old(folder: Path) -> None:
    """Keep the KEEP newest checkpoints; what lies before them goes, manifest first, so that no half of one looks complete."""
    kept = _complete(folder)[-KEEP:]
    for home in sorted((folder / "checkpoints").glob("step-*")):
        if home < kept[0]:
            (home / MANIFEST).unlink(missing_ok=True)
            shutil.rmtree(home, ignore_errors=True)
