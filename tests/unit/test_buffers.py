"""Memory that trainer and sidecars share."""

from __future__ import annotations

import gc
import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from commensal.ring.buffers import Memory, group_folders, group_room, require_room, rooms


def test_words_and_window_do_not_overlap() -> None:
    memory = Memory(words=1025, window_bytes=100)
    floats = memory.floats()
    assert floats.shape == (1025,)
    assert not floats.any()
    floats.fill_(1.0)
    assert not memory.window.any()
    memory.window[:] = 255
    assert (floats == 1.0).all()
    assert memory.window_offset == 2 * mmap.PAGESIZE


def test_others_see_what_is_written() -> None:
    memory = Memory(words=4)
    memory.floats()[2] = 1.5
    with mmap.mmap(memory.fd, memory.size_bytes) as other:
        assert other[8:12] == b"\x00\x00\xc0\x3f"


def test_it_cannot_shrink_under_its_users() -> None:
    memory = Memory(words=4)
    with pytest.raises(PermissionError):
        os.ftruncate(memory.fd, 0)


def test_the_tensor_outlives_the_memory_and_no_descriptor_does() -> None:
    before = len(os.listdir("/proc/self/fd"))
    memory = Memory(words=4)
    floats = memory.floats()
    memory.close()
    memory.close()
    del memory
    gc.collect()
    floats.fill_(2.0)
    assert floats.sum() == 8.0
    del floats
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_more_than_there_is_is_refused_with_the_figures() -> None:
    with pytest.raises(MemoryError, match=r"4611686018427387904 bytes of shared memory wanted, but .* leaves \d+ bytes"):
        require_room(1 << 62)


def test_the_address_space_limit_counts() -> None:
    script = (
        "import resource; from commensal.ring.buffers import Memory\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"
        "Memory(words=1 << 10)\n"
        "try: Memory(words=1 << 29)\n"
        "except MemoryError as error: print(error)"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert "2147483648 bytes of shared memory wanted, but RLIMIT_AS leaves" in answer.stdout


def test_rooms_include_the_machine() -> None:
    assert dict(rooms())["the machine"] > 0


def test_control_groups_of_both_versions() -> None:
    root = Path("/sys/fs/cgroup")
    text = "4:memory:/slurm/job_7\n3:cpuset:/x\n0::/user/a\n"
    assert group_folders(text, root) == [
        root / "memory/slurm/job_7",
        root / "memory/slurm",
        root / "memory",
        root / "user/a",
        root / "user",
        root,
    ]
    assert group_folders("4:cpu,memory:/j\n", root)[0] == root / "memory/j"


def test_a_control_group_leaves_what_it_leaves(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 400\ninactive_file 200\n")
    assert list(group_room(tmp_path)) == [(f"{tmp_path}/memory.max (1000 bytes)", 500)]
    (tmp_path / "memory.max").write_text("max\n")
    assert list(group_room(tmp_path)) == []
    assert list(group_room(tmp_path / "none")) == []
