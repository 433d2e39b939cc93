"""A scheduler log run again with pilots on its idle nodes, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from commensald.replay import primaries
from commensald.replay.report import Delays
from commensald.replay.traces import Change, Span, Trace
from commensald.strict import InputError

EPOCH = 1000.0
HEADER = f"; MaxNodes: 4\n; MaxProcs: 4\n; UnixStartTime: {EPOCH:.0f}\n"


def job(number: int, submit: int, wait: int, seconds: int, processors: int, asked: int) -> str:
    return f"{number} {submit} {wait} {seconds} {processors} -1 -1 {processors} {asked} -1 1 1 1 -1 -1 -1 -1 -1\n"


def machine(folder: Path, *jobs: str, begin: float | None = None, nodes: int | None = None) -> primaries.Machine:
    path = folder / "log.swf"
    path.write_text(HEADER + "".join(jobs))
    return primaries.machine(path, Span(begin=begin), nodes)


def run(asked: primaries.Machine, exit_seconds: float = 0.5) -> tuple[Trace, Delays | None]:
    return primaries.run(asked, exit_seconds, lambda share: None)


def nodes(*places: int) -> frozenset[str]:
    return frozenset(f"{place:06d}" for place in places)


def test_pilots_fill_what_is_idle_and_a_job_waits_until_they_are_gone(tmp_path: Path) -> None:
    trace, delays = run(machine(tmp_path, job(1, 0, 0, 100, 2, 100), job(2, 50, 50, 100, 4, 100), job(3, 400, 0, 9, 1, 9)))
    assert (trace.start, trace.end) == (EPOCH, EPOCH + 400)
    assert trace.changes == (
        Change(EPOCH, joined=nodes(2, 3)),
        Change(EPOCH + 100, left=nodes(2, 3)),
        Change(EPOCH + 200.5, joined=nodes(0, 1, 2, 3)),
    )
    assert delays == Delays(mean=0.5, median=0.5, most=0.5)


def test_pilots_that_leave_at_once_delay_nobody(tmp_path: Path) -> None:
    asked = machine(tmp_path, job(1, 0, 0, 100, 2, 100), job(2, 50, 50, 100, 4, 100), job(3, 400, 0, 9, 1, 9))
    assert run(asked, exit_seconds=0.0)[1] == Delays(mean=0.0, median=0.0, most=0.0)


def test_a_replay_begins_with_the_jobs_that_ran_then(tmp_path: Path) -> None:
    trace, delays = run(machine(tmp_path, job(1, 0, 0, 100, 3, 100), job(2, 90, 0, 9, 1, 9), job(3, 150, 0, 9, 1, 9), begin=EPOCH + 60))
    assert trace.changes[:2] == (Change(EPOCH + 60, joined=nodes(3)), Change(EPOCH + 90, left=nodes(3)))
    assert trace.changes[-1] == Change(EPOCH + 100, joined=nodes(0, 1, 2))
    assert delays == Delays(mean=0.5, median=0.5, most=0.5)


def test_a_log_without_waits_is_scheduled_up_to_the_beginning(tmp_path: Path) -> None:
    """The second job waits for the first, and has 40 s left at second 160."""
    trace, _ = run(machine(tmp_path, job(1, 0, -1, 100, 4, 100), job(2, 10, -1, 100, 4, 100), job(3, 300, -1, 9, 1, 9), begin=EPOCH + 160))
    assert trace.changes == (Change(EPOCH + 160), Change(EPOCH + 200, joined=nodes(0, 1, 2, 3)))


def test_a_job_that_outran_its_limit_does_so_again(tmp_path: Path) -> None:
    trace, _ = run(machine(tmp_path, job(1, 0, 0, 100, 4, 50), job(2, 300, 0, 9, 1, 9)))
    assert trace.changes == (Change(EPOCH), Change(EPOCH + 100, joined=nodes(0, 1, 2, 3)))


def test_on_a_smaller_machine_each_job_has_the_share_it_had(tmp_path: Path) -> None:
    trace, _ = run(machine(tmp_path, job(1, 0, 0, 100, 2, 100), job(2, 300, 0, 9, 1, 9), nodes=2))
    assert trace.changes == (Change(EPOCH, joined=nodes(1)), Change(EPOCH + 100, joined=nodes(0)))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("1 2 3\n", r"log.swf:4: expected 18 fields, found 3"), ("", r"log.swf:3: expected at least one job")],
)
def test_an_unreadable_log_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        machine(tmp_path, text)
