"""Which keys a running daemon takes over."""

from __future__ import annotations

import msgspec

from commensald.config import Config, DaemonSection, PilotsSection
from commensald.coordinator import Limits
from commensald.reload import FIXED, FIXED_SECTIONS, merge

RUNNING = Config(daemon=DaemonSection(state="/a", socket="/a/s"), pilots=PilotsSection(folder="/p"))


def test_nothing_changes_when_nothing_was_changed() -> None:
    assert merge(RUNNING, RUNNING) == (RUNNING, ())


def test_what_nothing_open_depends_on_is_taken_over() -> None:
    wanted = msgspec.structs.replace(
        RUNNING,
        daemon=DaemonSection(state="/a", socket="/a/s", poll_seconds=3.0),
        pilots=PilotsSection(folder="/p", max_pilots=2, qos="scavenger"),
    )
    assert merge(RUNNING, wanted) == (wanted, ())


def test_the_rest_stays_and_is_named() -> None:
    wanted = msgspec.structs.replace(
        RUNNING,
        daemon=DaemonSection(state="/b", socket="/a/s", poll_seconds=3.0),
        pilots=PilotsSection(folder="/q", max_pilots=2, partition="other"),
        ring=Limits(lost_after=9.0),
    )
    merged, kept = merge(RUNNING, wanted)
    assert kept == ("daemon.state", "pilots.folder", "pilots.partition", "ring.lost_after")
    assert (merged.daemon.state, merged.daemon.poll_seconds) == ("/a", 3.0)
    assert (merged.pilots.folder, merged.pilots.max_pilots) == ("/p", 2)
    assert merged.ring == RUNNING.ring


def test_every_fixed_key_exists() -> None:
    for name in FIXED:
        section, _, key = name.partition(".")
        assert key in getattr(RUNNING, section).__struct_fields__
    assert set(Config.__struct_fields__) >= FIXED_SECTIONS
