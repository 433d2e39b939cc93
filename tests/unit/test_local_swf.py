"""Logs in the Standard Workload Format: what is read, what is refused, and the small workload made of a large one."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commensald.schedulers.local import swf
from commensald.schedulers.local.trace import Scale, workload

LOGS = Path(__file__).resolve().parents[3] / "shared" / "data" / "swf"
HEADER = "; MaxNodes: 100\n; MaxProcs: 800\n"


def line(number: int, submit: int, wait: int, run: int, processors: int, requested: int, *, sixth: int = -1, status: int = 1) -> str:
    """One job."""
    return f"{number} {submit} {wait} {run} {processors} {sixth} -1 {processors} {requested} -1 {status} 7 -1 -1 -1 -1 -1 -1\n"


def parse(*lines: str) -> swf.SwfLog:
    """A log of the machine of ``HEADER``."""
    return swf.parse((HEADER + "".join(lines)).splitlines(), "log")


def test_reads_plain_and_gzip_alike(tmp_path: Path) -> None:
    text = HEADER + line(1, 10, 5, 100, 8, 200)
    (tmp_path / "plain").write_text(text)
    (tmp_path / "packed").write_bytes(gzip.compress(text.encode()))
    assert swf.read(tmp_path / "plain") == swf.read(tmp_path / "packed")
    (job,) = swf.read(tmp_path / "plain").jobs
    assert (job.submit, job.wait, job.seconds, job.processors, job.requested_seconds, job.user) == (10, 5, 100, 8, 200, 7)


def test_unknown_values_are_none_and_jobs_that_never_ran_are_left_out() -> None:
    log = parse(line(1, 0, -1, 50, 8, -1), line(2, 0, 9, 0, -1, 60), line(3, 0, 9, -1, 8, 60), line(4, 0, 9, 10, 8, 60, status=2))
    assert [(job.id, job.wait, job.requested_seconds) for job in log.jobs] == [(1, None, None)]
    assert (log.nodes, log.processors) == (100, 800)


def test_requested_time_in_field_six_when_the_whole_log_has_it_there() -> None:
    log = parse(line(1, 0, 1, 50, 8, -1, sixth=300), line(2, 0, 1, 50, 8, -1, sixth=400))
    assert [job.requested_seconds for job in log.jobs] == [300, 400]
    log = parse(line(1, 0, 1, 50, 8, -1, sixth=300), line(2, 0, 1, 50, 8, 60, sixth=40))
    assert [job.requested_seconds for job in log.jobs] == [None, 60]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("1 2 3\n", "log:4: expected 18 fields, found 3: '1 2 3'"),
        (line(2, 0, 1, 50, 8, 60).replace("50", "fifty"), "log:4: expected a number in field 4, found 'fifty'"),
        (line(2, 0, 1, 50, 8, 60).replace("50", "nan"), "log:4: expected a number in field 4, found 'nan'"),
    ],
)
def test_unreadable_line_is_named(bad: str, says: str) -> None:
    with pytest.raises(swf.SwfError) as caught:
        parse(line(1, 0, 1, 50, 8, 60), bad)
    assert str(caught.value) == says


def test_broken_gzip_and_empty_log_are_named(tmp_path: Path) -> None:
    (tmp_path / "cut").write_bytes(gzip.compress((HEADER + line(1, 0, 1, 50, 8, 60) * 500).encode())[:-20])
    with pytest.raises(swf.SwfError, match=r"cut:\d+: expected a whole gzip file"):
        swf.read(tmp_path / "cut")
    with pytest.raises(swf.SwfError, match="log:2: expected at least one job that ran"):
        parse()


@given(st.lists(st.text(alphabet="0123456789-. ;x\t", max_size=60), max_size=5))
def test_any_text_gives_a_log_or_a_named_error(lines: list[str]) -> None:
    try:
        found = f"log: {len(swf.parse(lines, 'log').jobs)} jobs"
    except swf.SwfError as error:
        found = str(error)
    assert found.startswith("log:")
    assert not found.endswith(" 0 jobs")


def test_begins_where_a_job_first_waits_with_what_runs_then() -> None:
    log = parse(line(1, 0, 0, 3000, 400, 6000), line(2, 100, 0, 60, 8, 60), line(3, 1200, 600, 600, 800, 600), line(4, 2400, 0, 90, 1, 60))
    jobs = workload(log, Scale(nodes=8, speedup=60))
    assert [(job.name, job.at, job.node_count, job.seconds, job.time_limit) for job in jobs] == [
        ("swf-1", 0.0, 4, 30.0, 80.0),
        ("swf-3", 0.0, 8, 10.0, 10.0),
        ("swf-4", 20.0, 1, 5.0, 5.0),
    ]


def test_log_without_waits_is_scheduled_by_the_core() -> None:
    log = parse(line(1, 0, -1, 600, 800, 900), line(2, 60, -1, 600, 800, 900), line(3, 6000, -1, 600, 80, 900))
    jobs = workload(log, Scale(nodes=8, speedup=60))
    assert [(job.name, job.at, job.seconds) for job in jobs] == [("swf-1", 0.0, 9.0), ("swf-2", 0.0, 10.0), ("swf-3", 99.0, 10.0)]


def test_without_a_requested_time_a_job_asks_for_what_it_runs() -> None:
    (job,) = workload(parse(line(1, 0, 5, 600, 8, -1)), Scale(nodes=8, speedup=60))
    assert job.time_limit == job.seconds == 10.0


@pytest.mark.skipif(not LOGS.is_dir(), reason="the recorded logs of ../shared/data/swf are not here")
@pytest.mark.parametrize(
    ("name", "jobs", "nodes"), [("theta_1000", 1000, 4360), ("lublin_256", 10_000, 256), ("UniLu-Gaia-2014-1", 51_000, 151)]
)
def test_recorded_logs_become_workloads(name: str, jobs: int, nodes: int) -> None:
    log = swf.read(LOGS / f"{name}.swf.gz")
    assert log.nodes == nodes
    assert len(log.jobs) > 0.9 * jobs
    made = workload(log, Scale(nodes=8, speedup=60))
    assert made[0].at == 0.0
    assert all(1 <= job.node_count <= 8 and job.seconds >= 5.0 and (job.time_limit or 0.0) >= 5.0 for job in made)
    assert [job.at for job in made] == sorted(job.at for job in made)


@pytest.mark.skipif(not LOGS.is_dir(), reason="the recorded logs of ../shared/data/swf are not here")
def test_mira_asks_for_its_time_in_field_six() -> None:
    log = swf.read(LOGS / "mira.swf.gz")
    assert all(job.requested_seconds is not None for job in log.jobs)
