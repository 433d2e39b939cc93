"""Memory that a trainer shares with its sidecars: gradients as words, and a window for moving state.

A memfd has no name, so nothing is left behind however its holders end, and it is not bound by the size of /dev/shm (memfd_create(2)).
Layout: ``words`` float32, padding up to a page, then the window's bytes.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import resource
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil

from commensal.ring.transport import Bytes, Words

if TYPE_CHECKING:
    import torch

WORD_BYTES = 4
_CGROUPS = Path("/sys/fs/cgroup")
_UNLIMITED_BYTES = 1 << 60


class Memory:
    """Zeroed shared memory for ``words`` float32 words and a window of ``window_bytes`` bytes.

    Raises MemoryError, with the figures, when the job's memory limit leaves no room for it.
    """

    def __init__(self, words: int, window_bytes: int = 0) -> None:
        self.words = words
        self.window_bytes = window_bytes
        self.window_offset = -(-words * WORD_BYTES // mmap.PAGESIZE) * mmap.PAGESIZE
        self.size_bytes = max(self.window_offset + window_bytes, mmap.PAGESIZE)
        require_room(self.size_bytes)
        self.fd = os.memfd_create("commensal-ring", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self.close = weakref.finalize(self, os.close, self.fd)
        os.ftruncate(self.fd, self.size_bytes)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        self._map = mmap.mmap(self.fd, self.size_bytes)

    def floats(self) -> torch.Tensor:
        """The words as a flat float32 tensor, shape (words,); it keeps the mapping alive by itself."""
        import torch

        return torch.from_numpy(map_words(self._map, self.words))

    @property
    def window(self) -> Bytes:
        """The window's bytes, writable, shape (window_bytes,)."""
        return map_window(self._map, self.window_offset, self.window_bytes)


def map_words(mapping: mmap.mmap, words: int) -> Words:
    """The words of a mapping, shape (words,)."""
    return np.frombuffer(mapping, np.float32, words)


def map_window(mapping: mmap.mmap, offset: int, size_bytes: int) -> Bytes:
    """The window of a mapping, shape (size_bytes,)."""
    return np.frombuffer(mapping, np.uint8, size_bytes, offset) if size_bytes else np.empty(0, np.uint8)


def require_room(size_bytes: int) -> None:
    """Raises MemoryError when any limit on this process has less than ``size_bytes`` left."""
    limit, room_bytes = min(rooms(), key=lambda room: room[1])
    if size_bytes > room_bytes:
        raise MemoryError(f"{size_bytes} bytes of shared memory wanted, but {limit} leaves {max(room_bytes, 0)} bytes")


def rooms() -> Iterator[tuple[str, int]]:
    """Each limit on this process's memory and the bytes it leaves: the machine, RLIMIT_AS, and every control group above us."""
    yield "the machine", psutil.virtual_memory().available
    address_space = resource.getrlimit(resource.RLIMIT_AS)[0]
    if address_space != resource.RLIM_INFINITY:
        yield "RLIMIT_AS", address_space - psutil.Process().memory_info().vms
    for folder in group_folders(Path("/proc/self/cgroup").read_text(), _CGROUPS):
        yield from group_room(folder)


def group_folders(text: str, root: Path) -> list[Path]:
    """Folders of the memory control groups named in /proc/self/cgroup, each with its parents (cgroups(7)); both versions."""
    folders: list[Path] = []
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        base = root / "memory" if "memory" in controllers.split(",") else root
        if controllers and base == root:
            continue
        leaf = base / path.lstrip("/")
        folders += [folder for folder in (leaf, *leaf.parents) if folder.is_relative_to(base)]
    return folders


def group_room(folder: Path) -> Iterator[tuple[str, int]]:
    """What one control group leaves; file pages not in use are not counted as used."""
    for limit_name, usage_name in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
        try:
            limit, usage = (folder / limit_name).read_text().strip(), int((folder / usage_name).read_text())
            statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        except OSError:
            continue
        if limit != "max" and int(limit) < _UNLIMITED_BYTES:
            idle_bytes = int(statistics.get("total_inactive_file", statistics.get("inactive_file", 0)))
            yield f"{folder / limit_name} ({limit} bytes)", int(limit) - usage + idle_bytes
