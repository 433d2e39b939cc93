"""The demo from start to end, as a person runs it, shortened."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from recomputation import recompute

COMMENSAL = (sys.executable, "-c", "from commensald.cli.commensal import main; main()")


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with out.json, events.jsonl and timeline.png of one demo of 60 s."""
    place = tmp_path_factory.mktemp("demo")
    outputs = ["--json", place / "out.json", "--events", place / "events.jsonl", "--plot", place / "timeline.png"]
    argv = [*COMMENSAL, "demo", "--seconds", "60", "--folder", place / "work", *outputs]
    done = subprocess.run([*map(str, argv)], capture_output=True, text=True, timeout=150, stdin=subprocess.DEVNULL)
    (place / "printed").write_text(done.stdout + done.stderr)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    return place


def summary(outcome: Path) -> dict[str, object]:
    figures: dict[str, object] = json.loads((outcome / "out.json").read_text())
    return figures


def test_nothing_is_lost_and_the_host_does_not_notice(outcome: Path) -> None:
    figures = summary(outcome)
    promised = ("steps_lost", "samples_repeated", "samples_skipped", "deadline_misses")
    assert {key: figures[key] for key in promised} == dict.fromkeys(promised, 0)
    assert figures["primary_delay_seconds_max"] <= 1.0


def test_it_trains_in_rings_of_several_and_kills_at_least_one(outcome: Path) -> None:
    figures = summary(outcome)
    assert figures["members_max"] >= 2
    assert figures["kills"] >= 1
    assert figures["preemptions"] >= 1
    assert all(training["samples"] > 0 for training in figures["trainings"])


def test_every_figure_can_be_recomputed_from_the_events(outcome: Path) -> None:
    log = [json.loads(line) for line in (outcome / "events.jsonl").read_text().splitlines()]
    expected = recompute(log)
    figures = summary(outcome)
    assert {key: figures[key] for key in expected} == expected


def test_no_process_is_left(outcome: Path) -> None:
    left = [process.info for process in psutil.process_iter(["pid", "cmdline"]) if str(outcome) in " ".join(process.info["cmdline"] or [])]
    assert left == []


def test_what_it_prints_and_draws(outcome: Path) -> None:
    printed = (outcome / "printed").read_text()
    assert "killed without notice" in printed
    assert "digits-convnet: generation" in printed
    assert "deadline misses" in printed
    assert (outcome / "timeline.png").read_bytes().startswith(b"\x89PNG")


def test_an_elastic_batch_and_a_goal_are_served(outcome: Path) -> None:
    log = [json.loads(line) for line in (outcome / "events.jsonl").read_text().splitlines()]
    batches = {entry["batch"] for entry in log if entry["kind"] == "step" and entry["training"] == "digits-convnet"}
    assert len(batches) > 1
    assert batches <= set(range(128, 513))
    assert any(entry["kind"] in ("training.outlook", "training.ended") and entry["training"] == "digits-mlp" for entry in log)
