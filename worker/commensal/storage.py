"""Files that are either whole or absent, whatever dies when."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

Result = TypeVar("Result")


def write_whole(path: Path, fill: Callable[[BinaryIO], Result]) -> Result:
    """Fill a temporary file beside ``path``, flush it to disk, rename it into place, flush the folder.

    Raises OSError; the temporary file is then removed and whatever ``path`` was is untouched.
    """
    temporary = path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        with open(temporary, "wb") as stream:
            result = fill(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)
    return result


def try_folder(folder: Path) -> None:
    """Write in the folder. Raises OSError when a later save would."""
    with tempfile.TemporaryFile(dir=folder) as probe:
        probe.write(b"0")


def flush_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    flush_folder(folder.parent)
