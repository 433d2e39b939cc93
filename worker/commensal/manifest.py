"""What makes a checkpoint: slice records, the manifest that names them, and where they lie.

Layout below the training's folder::

    checkpoints/step-000000000042/g1.7-2-of-3.safetensors   bytes of rank 2 of 3 in generation 1.7
                                  g1.7-2-of-3.json          its record: size, SHA-256, pieces; rank 0's holds the state's header
                                  manifest.json             names the records; a checkpoint without it does not exist

Names carry the generation, so what a refused generation wrote is never taken for another's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from commensal.messages import Generation
from commensal.slices import Piece

MANIFEST = "manifest.json"


class CheckpointError(RuntimeError):
    """A checkpoint is missing or damaged."""


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
    """A complete checkpoint: the names of its records by rank, with the SHA-256 of each."""

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


def home(folder: Path, step: int) -> Path:
    """Where a step's checkpoint lies."""
    return folder / "checkpoints" / f"step-{step:012d}"


def stem(generation: Generation, rank: int, size: int) -> str:
    """The name of a slice, without its ending."""
    return f"g{generation}-{rank}-of-{size}"


def complete(folder: Path) -> list[Path]:
    """The homes of checkpoints with a manifest, oldest first; not verified."""
    return sorted(path.parent for path in (folder / "checkpoints").glob(f"step-*/{MANIFEST}"))


def assemble(step: int, generation: Generation, texts: Sequence[tuple[str, bytes]]) -> bytes:
    """The manifest of the named records: the same bytes whoever writes it."""
    total = sum(msgspec.json.decode(text, type=Record).size_bytes for _, text in texts)
    digests = tuple((name, hashlib.sha256(text).hexdigest()) for name, text in texts)
    manifest = Manifest(step=step, generation=generation, records=digests, size_bytes=total)
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1)


def verify(path: Path) -> Found:
    """The checkpoint in a home, once all its bytes have been checked. Raises CheckpointError saying what is wrong."""
    try:
        manifest = msgspec.json.decode((path / MANIFEST).read_bytes(), type=Manifest)
        records = tuple(_verify_record(path, name, digest) for name, digest in manifest.records)
    except (OSError, msgspec.DecodeError) as error:
        raise CheckpointError(f"{path}: {error}") from error
    if {manifest.step} != {record.step for record in records} or path.name != home(path, manifest.step).name:
        raise CheckpointError(f"{path}: the manifest belongs to step {manifest.step} and names {len(records)} records")
    return Found(path=path, manifest=manifest, records=records)


def _verify_record(path: Path, name: str, digest: str) -> Record:
    text = (path / name).read_bytes()
    if hashlib.sha256(text).hexdigest() != digest:
        raise CheckpointError(f"{path / name} is not the record that its manifest names")
    record = msgspec.json.decode(text, type=Record)
    with open(path / record.file, "rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != record.sha256:
            raise CheckpointError(f"{path / record.file} does not have the bytes that were written")
    return record
