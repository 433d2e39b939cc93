"""commensal replay, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from replay_parts import synthetic

from commensald.cli.commensal import commensal
from commensald.cli.lazy import run
from commensald.replay import sets
from commensald.strict import InputError

RECORDED = Path(__file__).parents[3] / "shared" / "data"
KEYS = {"n_eq", "u", "u_star", "u_over_u_star", "used_node_time", "rescale_loss", "preempt_loss", "preempted_trainers", "events"}
KEYS |= {"decision_seconds_p50", "decision_seconds_p99", "seconds", "primary_delay_seconds_mean"}
WORKLOAD = """
[[trainer]]
name = "small"
samples = 2000.0
nodes = [1, 4]
curve = { nodes = [1, 2, 4], samples_per_second = [10.0, 18.0, 30.0] }
rescale_up = 4.0
rescale_down = 2.0

[[trainer]]
name = "large"
samples = 9000.0
nodes = [2, 8]
curve = { nodes = [1, 8], samples_per_second = [10.0, 60.0] }
"""
SET = {"samples": 8000.0, "min_nodes": 1, "max_nodes": 8, "scale_down_seconds": 3.0}
TABLES = {
    "networks": {name: {"nodes": [0, 1, 8], "images_per_second": [0.0, rate, rate * 6]} for name, rate in (("a", 10.0), ("b", 20.0))},
    "trainers": {
        "hpo": {**SET, "count": 3, "network": "b", "scale_up_seconds": 5.0},
        "mix": {**SET, "count": 4, "scale_up_seconds": {"uniform": [5, 9]}},
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a log of idle nodes, a workload and tables."""
    (tmp_path / "log.csv").write_text("unix_time,node,idle\n" + "".join(events()))
    (tmp_path / "order").write_text("".join(f"{place:06d}\n" for place in reversed(range(40))))
    (tmp_path / "work.toml").write_text(WORKLOAD)
    (tmp_path / "tables.json").write_text(json.dumps(TABLES))
    return tmp_path


def events() -> list[str]:
    changes = synthetic(seed=1, seconds=5000.0).changes
    return [
        f"{each.at:.0f},{node},{idle}\n" for each in changes for idle, nodes in ((1, each.joined), (0, each.left)) for node in sorted(nodes)
    ]


def asked(capsys: pytest.CaptureFixture[str], *words: str | Path) -> dict[str, Any]:
    code = run(commensal, ["replay", *map(str, words), "--json"])
    printed = capsys.readouterr()
    assert (code, printed.err) == (0, "")
    figures: dict[str, Any] = json.loads(printed.out)
    return figures


def refused(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    assert run(commensal, ["replay", *map(str, words)]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    return line


def test_every_figure_is_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = asked(capsys, "idle-events", folder / "log.csv", "--workload", folder / "work.toml", "--trainers", "3")
    assert figures.keys() >= KEYS
    assert 0 < figures["u"] <= figures["u_star"] * 1.05
    assert figures["u_over_u_star"] == pytest.approx(figures["u"] / figures["u_star"])
    assert figures["primary_delay_seconds_mean"] is None


def test_options_reach_the_replay(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("idle-events", folder / "log.csv", "--tables", folder / "tables.json", "--trainers", "3")
    plain = asked(capsys, *words)
    changed = {
        ("--nodes", "10", "--node-order", folder / "order"): "n_eq",
        ("--hours", "1"): "events",
        ("--from", "2500"): "n_eq",
        ("--workload", "mix"): "u",
        ("--allocator", "equal"): "u",
        ("--look-ahead", "5"): "u",
        ("--trainers", "2"): "u",
        ("--rescale-up", "60"): "rescale_loss",
        ("--rescale-down", "60"): "preempt_loss",
        ("--warm-up", "60"): "rescale_loss",
        ("--cold-start", "free"): "rescale_loss",
        ("--finish", "legacy"): "u",
    }
    same = [(option, figure) for option, figure in changed.items() if asked(capsys, *words, *option)[figure] == plain[figure]]
    assert same == []
    mixed = asked(capsys, *words, "--workload", "mix", "--unit", "speedup"), asked(capsys, *words, "--workload", "mix")
    assert mixed[0]["u"] != mixed[1]["u"]
    assert asked(capsys, *words, "--unit", "speedup")["u"] == pytest.approx(plain["u"], rel=1e-3)


def test_people_get_a_table_and_a_picture(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    words = ["replay", "idle-events", folder / "log.csv", "--workload", folder / "work.toml", "--measured-ring", "--plot", folder / "a.png"]
    assert run(commensal, [str(word) for word in words]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == ["figure", "value", "meaning"]
    assert any(line.startswith("U, our ring") for line in printed)
    assert (folder / "a.png").read_bytes().startswith(b"\x89PNG")


def test_other_kinds_of_log(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "polls").write_text("1000\ninvokers: n1,n2\nlow up 1:00 2 idle n[3-4]\n----\n2000\ninvokers: n1\n----\n3000\n----\n")
    polls = asked(capsys, "sinfo-log", folder / "polls", "--workload", folder / "work.toml", "--trainers", "1")
    assert (polls["n_eq"], polls["events"]) == (2.5, 2)
    jobs = [(1, 0, 0, 100, 2), (2, 50, 50, 100, 4), (3, 400, 0, 9, 1)]
    row = "{} {} {} {} {} -1 -1 -1 100 -1 1 1 1 -1 -1 -1 -1 -1\n"
    (folder / "jobs.swf").write_text("; MaxNodes: 4\n" + "".join(row.format(*job) for job in jobs))
    primaries = asked(capsys, "swf", folder / "jobs.swf", "--exit", "2", "--workload", folder / "work.toml")
    assert (primaries["primary_delay_seconds_mean"], primaries["events"]) == (2.0, 3)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--workload", "hpo"), "--workload hpo: no such file; the sets of scaling_tables.json need --tables FILE"),
        (("--workload", "hop", "--tables", "{}/tables.json"), "unknown set 'hop' (did you mean 'hpo'?)"),
        (("--tables", "{}/work.toml"), "work.toml: not a file of scaling tables"),
        (("--workload", "{}/work.toml", "--nodes", "41"), "--nodes 41: there are 40"),
        (("--workload", "{}/work.toml", "--from", "1e6"), "--from 1000000: the log reaches from 0 to 4"),
        (("--workload", "{}/work.toml", "--node-order", "{}/none"), "none: cannot be read: No such file"),
        (("--workload", "{}/work.toml", "--plot", "{}/none/a.png"), "none/a.png: cannot be written there"),
        (("--workload", "{}/work.toml", "--hours", "nan"), "Invalid value for '--hours': nan is not a finite number"),
        (("--workload", "{}/work.toml", "--warm-up", "inf"), "Invalid value for '--warm-up': inf is not a finite number"),
        (("--workload", "{}/work.toml", "--allocator", "best"), "Invalid value for '--allocator'"),
    ],
)
def test_wrong_use_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], complaint: str) -> None:
    assert complaint in refused(capsys, "idle-events", folder / "log.csv", *(word.format(folder) for word in words))


def test_a_bad_line_of_the_log_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "log.csv").write_text("1,a,1\n2,a,maybe\n")
    line = refused(capsys, "idle-events", folder / "log.csv", "--workload", folder / "work.toml")
    assert line.endswith("log.csv:2: expected unix_time,node,idle with idle 0 or 1, found '2,a,maybe'\n")


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ("nodes = [1, 4]", "nodes = [4, 1]", "small: nodes = [min, max] with min <= max, got [4, 1]"),
        ("[10.0, 18.0, 30.0]", "[10.0, 18.0]", "small: expected as many rates above 0 as nodes, nodes ascending"),
        ("samples = 2000.0", "samples = 0.0", "work.toml: trainer[0].samples: expected float > 0.0"),
        ("samples = 2000.0", "", "work.toml: key 'trainer[0].samples' is missing"),
        ("rescale_up", "rescale-up", "work.toml: trainer[0]: object contains unknown field rescale-up"),
    ],
)
def test_a_wrong_workload_is_named(folder: Path, before: str, after: str, complaint: str) -> None:
    (folder / "work.toml").write_text(WORKLOAD.replace(before, after, 1))
    with pytest.raises(InputError) as error:
        sets.load(str(folder / "work.toml"), None)
    assert complaint in str(error.value)


def test_the_example_workload_is_read() -> None:
    kinds = sets.load(str(Path(__file__).parents[2] / "config" / "examples" / "trainers.toml"), None)
    assert [(each.name, each.max_nodes, each.rate(4), each.warmup) for each in kinds] == [
        ("convnet", 16, 10500.0, 7.0),
        ("wide", 32, 4000.0, 20.0),
    ]


def test_a_set_goes_round_the_networks_and_draws_its_stalls(folder: Path) -> None:
    mix = sets.load("mix", folder / "tables.json")
    assert [each.name for each in mix] == ["a", "b", "a", "b"]
    assert all(5.0 <= each.grow_stall <= 9.0 and each.shrink_stall == 3.0 for each in mix)
    assert len({each.grow_stall for each in mix}) == 4
    assert [each.curve for each in sets.load("hpo", folder / "tables.json")] == 3 * [((1, 20.0), (8, 120.0))]


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded clusters of ../shared/data are not here")
def test_six_recorded_hours(capsys: pytest.CaptureFixture[str]) -> None:
    """The pool by its own count; cheap rescales come near the best split."""
    idle = RECORDED / "idle"
    span = ("--nodes", "1024", "--node-order", idle / "summit_node_order.txt.gz", "--from", "1612988475", "--hours", "6")
    costs = ("--tables", idle / "scaling_tables.json", "--rescale-up", "0.1", "--rescale-down", "0.1")
    figures = asked(capsys, "idle-events", idle / "summit_idle_events.csv.gz", *span, *costs)
    assert (figures["events"], figures["n_eq"]) == (288, pytest.approx(64.2, abs=0.01))
    assert 0.99 <= figures["u_over_u_star"] <= 1.0
