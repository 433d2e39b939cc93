"""Logs of idle nodes, and the pools that they describe."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from commensald.replay.logs import idle_events, node_order, sinfo_log
from commensald.replay.traces import Change, Span, trace
from commensald.strict import InputError

EVENTS = "unix_time,node,idle\n100,b,1\n100,c,1\n150,a,1\n200,b,0\n200,d,1\n250,d,0\n260,d,1\n260,d,0\n300,a,0\n"
POLLS = """1000
invokers: n07,n08
lowprio      up   12:00:00      2   idle n[01-02]
lowprio      up   12:00:00      1   idle~ n03
----
1010
invokers: n07
lowprio      up   12:00:00      1   idle% n01
lowprio      up   12:00:00      1   idle n02
----
1020
invokers:
----
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "log"
    path.write_text(text)
    return path


def test_the_pool_of_some_nodes_over_part_of_a_log(tmp_path: Path) -> None:
    log = idle_events(written(tmp_path, EVENTS))
    assert (log.begins, log.ends, log.nodes) == (100.0, 300.0, ("b", "c", "a", "d"))
    pool = trace(log, Span(begin=120.0, hours=150 / 3600), ("d", "b", "a"))
    d, b, a = "000000", "000001", "000002"
    assert pool.changes == (
        Change(120.0, joined=frozenset({b})),
        Change(150.0, joined=frozenset({a})),
        Change(200.0, joined=frozenset({d}), left=frozenset({b})),
        Change(250.0, left=frozenset({d})),
    )
    assert list(pool.sizes()) == [(30.0, 1), (50.0, 2), (50.0, 2), (20.0, 1)]
    assert pool.equivalent_nodes == pytest.approx(250 / 150)


def test_a_packed_log_reads_the_same(tmp_path: Path) -> None:
    packed = tmp_path / "log.gz"
    packed.write_bytes(gzip.compress(EVENTS.encode()))
    assert idle_events(packed) == idle_events(written(tmp_path, EVENTS))
    packed.write_bytes(gzip.compress(EVENTS.encode())[:-12])
    with pytest.raises(InputError, match=r"log.gz:\d+: expected text, plain or gzip"):
        idle_events(packed)


def test_of_sinfo_only_plain_idle_nodes_count_and_those_with_a_pilot(tmp_path: Path) -> None:
    log = sinfo_log(written(tmp_path, POLLS))
    gone = [(1010.0, "n01", False), (1010.0, "n08", False), (1020.0, "n02", False), (1020.0, "n07", False)]
    assert log.events == [*((1000.0, node, True) for node in ("n01", "n02", "n07", "n08")), *gone]
    assert (log.begins, log.ends) == (1000.0, 1020.0)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("unix_time,node,idle\n100,a,1\n110;a;0\n", "log:3: expected unix_time,node,idle with idle 0 or 1, found '110;a;0'"),
        ("100,a,1\nnow,a,0\n", "log:2: expected a unix time, found 'now'"),
        ("100,a,1\n90,a,0\n", "log:2: expected a time not before 100, found '90,a,0'"),
        ("100,a,1\n", "log: expected events at two instants at least"),
    ],
)
def test_an_unreadable_line_of_events_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(InputError) as error:
        idle_events(written(tmp_path, text))
    assert complaint in str(error.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1000\ninvokers: n1\nidle n2\n", "log:3: expected 'invokers: NODES', 6 fields of sinfo or '----', found 'idle n2'"),
        ("1000\ninvokers: n[1\n", "log:2: expected a list of nodes, found 'n[1'"),
        ("1000\n----\nsoon\n", "log:3: expected a unix time, found 'soon'"),
        ("1000\n----\n900\n", "log:3: expected a time not before 1000, found '900'"),
    ],
)
def test_an_unreadable_line_of_sinfo_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(InputError) as error:
        sinfo_log(written(tmp_path, text))
    assert complaint in str(error.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none: cannot be read: No such file"):
        node_order(tmp_path / "none")


@pytest.mark.parametrize(
    ("span", "complaint"),
    [
        (Span(begin=99.0), "--from 99: the log reaches from 100 to 300"),
        (Span(begin=300.0), "--from 300: the log reaches from 100 to 300"),
        (Span(begin=120.0, hours=1.0), "--hours 1: the log ends 0.05 hours after 120"),
    ],
)
def test_a_span_outside_the_log_is_refused(tmp_path: Path, span: Span, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        trace(idle_events(written(tmp_path, EVENTS)), span, ("a",))
