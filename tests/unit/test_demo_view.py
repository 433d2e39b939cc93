"""What the demo shows while it runs, and whom it kills."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from demo_log import LOG, event, random_log
from rich.console import Console

from commensald.demo import plain, report, timeline
from commensald.demo.board import Board, Use
from commensald.demo.injection import Kills
from commensald.demo.occupancy import stays
from commensald.demo.record import read
from commensald.demo.summary import summarise
from commensald.demo.view import Strip, render, sparkline


def board_at(at: float) -> Board:
    board = Board(["net"])
    for entry in read(entry for entry in LOG if float(str(entry["at"])) <= at):
        board.apply(entry)
    return board


def text_of(renderable: object) -> str:
    console = Console(file=io.StringIO(), width=140, force_terminal=False, record=True)
    console.print(renderable)
    return console.export_text()


@pytest.mark.parametrize(
    ("at", "n1", "n2"),
    [
        (10, (Use.PRIMARY, None), (Use.PILOT, None)),
        (24, (Use.PILOT, None), (Use.PILOT, None)),
        (40, (Use.RING, "net"), (Use.RING, "net")),
        (60.1, (Use.RING, "net"), (Use.PILOT, None)),
        (61, (Use.RING, "net"), (Use.IDLE, None)),
        (79.6, (Use.PRIMARY, None), (Use.IDLE, None)),
        (95, (Use.PRIMARY, None), (Use.DOWN, None)),
    ],
)
def test_the_board_knows_what_each_node_is_used_for(at: float, n1: object, n2: object) -> None:
    board = board_at(at)
    assert [board.use(node, at) for node in board.nodes] == [n1, n2]


def test_a_reservation_shows_while_it_lasts() -> None:
    board = board_at(1)
    board.apply(read([event(1, "reservation", name="r", nodes=["n2"], start=2.0, end=3.0)])[0])
    assert [board.use("n2", at)[0] for at in (1.5, 2.5, 3.5)] == [Use.IDLE, Use.RESERVED, Use.IDLE]


def test_the_board_counts_as_the_summary_does() -> None:
    counters, summary = board_at(100).counters, summarise(LOG)
    assert (counters.primaries, counters.pilots, counters.preemptions) == (summary.primary_jobs, summary.pilots, summary.preemptions)
    assert (counters.kills, counters.generations, counters.checkpoints) == (summary.kills, summary.generations, summary.checkpoints)


def test_the_view_shows_strips_rings_and_counters() -> None:
    strip = Strip(seconds=100, columns=20)
    for at in range(0, 65, 5):
        strip.sample(board_at(at), at, at)
    shown = text_of(render(board_at(62), strip, 62, 100))
    assert "n1 ████·AAAAAAAA" in shown
    assert "n2 ·░░░░░AAAAAA░" in shown
    assert "62 of 100 s" in shown
    assert "1.3" in shown
    assert "0.2500" in shown
    assert "killed 1" in shown


def test_a_sparkline_spans_low_to_high() -> None:
    assert sparkline([3, 2, 1], 10) == "█▅▁"
    assert len(sparkline(range(1000), 20)) == 20
    assert sparkline([], 5) == ""
    assert sparkline([1, 1], 5) == "▁▁"


def test_plain_lines_tell_what_matters() -> None:
    lines = [line for line in map(plain.line, read(LOG)) if line]
    assert "net: generation 1.2, 2 members (n1, n2) join" in lines
    assert "pilot p2 killed without notice" in lines
    assert "pilot p1 preempted: SIGTERM" in lines
    assert list(plain.status(board_at(75))) == ["net: 1 members, step 4, 8 samples, loss 0.2500, accuracy 0.750"]


def test_a_kill_waits_for_its_time_and_a_ring_large_enough() -> None:
    kills = Kills(due=(30.0,), patience=10.0)
    assert kills.victim(board_at(29), 29) is None
    assert kills.victim(board_at(35), 35) is None
    assert kills.victim(board_at(41), 41) == "p1"
    assert kills.victim(board_at(80), 80) is None


def test_the_report_has_every_training_and_share() -> None:
    shown = text_of(report.table(summarise(LOG)))
    assert "149.5 node-seconds" in shown
    assert "112.8 node-seconds (75%)" in shown
    assert "8 samples, loss 0.2500, accuracy 0.750" in shown


def test_the_timeline_is_a_picture(tmp_path: Path) -> None:
    timeline.draw(random_log(3), tmp_path / "timeline.png")
    assert (tmp_path / "timeline.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_ring_sizes_follow_the_stays() -> None:
    entries = read(LOG)
    assert timeline.ring_sizes(stays(entries), "net") == [(25, 1), (30, 2), (59.8, 1), (79, 0)]
