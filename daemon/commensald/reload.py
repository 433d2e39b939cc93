"""Reading the configuration again while rings train: what may change, and what needs a new start. Pure."""

from __future__ import annotations

import msgspec

from commensald.config import Config

FIXED = frozenset({"daemon.state", "daemon.socket", "daemon.bind", "daemon.events", "pilots.folder", "pilots.partition"})
"""Keys that something open depends on: files, sockets, what running pilots were told, whose grace the scheduler told us."""
FIXED_SECTIONS = frozenset({"scheduler", "ring"})


def fixed(section: str, key: str) -> bool:
    """Whether a change of this key needs a new start."""
    return section in FIXED_SECTIONS or f"{section}.{key}" in FIXED


def merge(running: Config, wanted: Config) -> tuple[Config, tuple[str, ...]]:
    """``wanted`` with the fixed keys as they are in ``running``, and the names of the fixed keys that were to change."""
    sections, kept = {}, []
    for section in Config.__struct_fields__:
        old, new = getattr(running, section), getattr(wanted, section)
        changed = [key for key in new.__struct_fields__ if fixed(section, key) and getattr(old, key) != getattr(new, key)]
        kept += [f"{section}.{key}" for key in changed]
        sections[section] = msgspec.structs.replace(new, **{key: getattr(old, key) for key in changed})
    return Config(**sections), tuple(kept)
