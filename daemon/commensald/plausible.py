"""What types cannot say of a configuration: figures that are finite, and figures that fit each other. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import msgspec

from commensald.node_lists import NodeListError, node_names

if TYPE_CHECKING:
    from commensald.config import AllocateSection, Config


_CLOCK = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]", re.ASCII)


def faults(config: Config) -> Iterator[tuple[str, str]]:
    """("section.key", words) of each value that cannot be meant."""
    yield from _numbers(config)
    ring, backoff = config.ring, config.backoff
    if ring.beat_seconds >= ring.lost_after:
        yield "ring.beat_seconds", f"expected less than ring.lost_after ({ring.lost_after:g}), got {ring.beat_seconds:g}"
    if backoff.first_seconds > backoff.most_seconds:
        yield "backoff.first_seconds", f"expected at most backoff.most_seconds ({backoff.most_seconds:g}), got {backoff.first_seconds:g}"
    yield from _allocation(config.allocate)
    for hours in config.limits.quiet_hours:
        begin, _, end = hours.partition("-")
        if not (_CLOCK.fullmatch(begin) and _CLOCK.fullmatch(end)):
            yield "limits.quiet_hours", f"expected two times like 22:00-06:00, got {hours!r}"
        elif begin == end:
            yield "limits.quiet_hours", f"expected two different times, got {hours}"


def _allocation(allocate: AllocateSection) -> Iterator[tuple[str, str]]:
    if allocate.allocator == "milp" and find_spec("highspy") is None:
        yield "allocate.allocator", "'milp' needs HiGHS: pip install 'commensal[milp]'"
    if allocate.caps and allocate.allocator != "milp":
        yield "allocate.caps", f"expected allocate.allocator = 'milp', the only one that keeps caps, got '{allocate.allocator}'"
    if allocate.autoscale and allocate.allocator != "batch":
        yield "allocate.autoscale", f"expected allocate.allocator = 'batch', got '{allocate.allocator}'"
    for name, cap in allocate.caps.items():
        try:
            node_names(cap.nodes or "")
        except NodeListError as error:
            yield "allocate.caps", f"{name}.nodes: {error}"


def _numbers(config: Config) -> Iterator[tuple[str, str]]:
    for key, value in msgspec.structs.asdict(config.ring).items():
        if not value > 0:
            yield f"ring.{key}", f"expected a number > 0, got {value}"
    plain: dict[str, dict[str, Any]] = msgspec.to_builtins(config)
    for section, table in plain.items():
        for key, value in table.items():
            if isinstance(value, float) and not math.isfinite(value):
                yield f"{section}.{key}", f"expected a finite number, got {value}"
