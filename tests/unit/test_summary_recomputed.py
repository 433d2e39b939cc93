"""The summary against its recomputation, from the file that `--events` writes."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from demo_log import LOG, random_log
from recomputation import Log, recompute

from commensald.demo.follow import Follower
from commensald.demo.summary import summarise


def written(log: Log, path: Path) -> Log:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in log))
    return [dict(entry) for entry in Follower(path).read()]


@pytest.mark.parametrize("seed", range(5))
def test_a_random_log_summed_up_twice_gives_the_same(seed: int, tmp_path: Path) -> None:
    log = written(random_log(seed), tmp_path / "events.jsonl")
    summary = msgspec.to_builtins(summarise(log))
    expected = recompute(log)
    assert {key: summary[key] for key in expected} == expected


def test_the_hand_made_log_too(tmp_path: Path) -> None:
    log = written(LOG, tmp_path / "events.jsonl")
    summary = msgspec.to_builtins(summarise(log))
    expected = recompute(log)
    assert {key: summary[key] for key in expected} == expected


def test_a_line_still_being_written_waits(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    follower = Follower(path)
    assert follower.read() == []
    path.write_text('{"at": 1.0, "kind": "a"}\n{"at": 2.0, "ki')
    assert [entry["kind"] for entry in follower.read()] == ["a"]
    with path.open("a") as file:
        file.write('nd": "b"}\n')
    assert [entry["kind"] for entry in follower.read()] == ["b"]
    assert follower.read() == []
