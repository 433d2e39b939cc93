"""Profile files: the examples, what is refused, and `commensal plan` on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toml
from provisioning import EXAMPLES

from commensald.allocate.provision.profile_file import load_profile
from commensald.cli.commensal import commensal
from commensald.cli.lazy import run
from commensald.strict import InputError

SPOT: dict[str, Any] = {
    "model": "spot",
    "goal": {"loss": 0.8, "deadline_seconds": 9000.0},
    "server": {"parameters": 10.0, "request": 100.0, "bandwidth": 1000.0, "pcie": 10000.0, "a1": 0.5, "b1": -0.5},
    "loss": {"g1": 100.0, "g3": 1000.0, "g5": 0.5, "g4": 0.3},
    "kind": [
        {"name": "small", "quota": 4, "charge": 1.0, "batch": 64.0, "gpus": 2, "batch_seconds": 0.5},
        {"name": "large", "quota": 4, "charge": 2.0, "batch": 64.0, "gpus": 4, "samples_per_second": 512.0},
    ],
}
RING = {"batch": 64, "micro_batch": 8, "alpha": 0.1}
STEPS = [100.0 * n for n in range(1, 13)]


def losses(factor: float, steps: list[float] = STEPS) -> list[float]:
    return [factor * 100 / (step + 50) + 0.2 for step in steps]


def written(folder: Path, **changes: Any) -> Path:  # noqa: ANN401 - a file's tables
    path = folder / "plan.toml"
    path.write_text(toml.dumps({key: value for key, value in {**SPOT, **changes}.items() if value is not None}))
    return path


def kinds(**changes: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    first = {**SPOT["kind"][0], **changes}
    return [{key: value for key, value in first.items() if value is not None}, SPOT["kind"][1]]


def test_a_kind_is_read_as_it_is_meant(tmp_path: Path) -> None:
    small, large = load_profile(written(tmp_path)).profile.performance.kinds
    assert (small.batch, small.seconds, small.gpus) == (128.0, 0.5, 2)
    assert (large.batch, large.seconds, large.gpus) == (256.0, 0.5, 4)


def test_a_batch_from_memory(tmp_path: Path) -> None:
    path = written(tmp_path, memory={"a2": 8.0, "b2": 1.0}, kind=kinds(batch=None, memory_gib=16.0))
    assert load_profile(path).profile.performance.kinds[0].batch == 2 * 128.0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"kinds": []}, "unknown key 'kinds' (did you mean 'kind'?)"),
        ({"kind": kinds(qouta=3)}, "unknown key 'kind.qouta' (did you mean 'kind.quota'?)"),
        ({"kind": kinds(quota="3")}, "kind[0].quota: expected int, got '3'"),
        ({"kind": kinds(quota=-1)}, "kind 'small': quota, charge and preemptions_per_hour are not below 0"),
        ({"kind": kinds(charge=float("nan"))}, "not below 0"),
        ({"kind": kinds(batch_seconds=0.0)}, "kind 'small': batch, memory_gib, gpus and speed are above 0"),
        ({"kind": kinds(samples_per_second=3.0)}, "kind 'small': either batch_seconds or samples_per_second"),
        ({"kind": kinds(batch=None)}, "kind 'small': either batch, or memory_gib and a section [memory]"),
        ({"kind": kinds(batch=None, memory_gib=16.0)}, "a section [memory]"),
        ({"kind": kinds(batch=None, memory_gib=1.0), "memory": {"a2": 8.0, "b2": -8.0}}, "memory_gib: 1 GiB hold no sample"),
        ({"loss": {**SPOT["loss"], "g4": 0.0}}, "loss.g4: above 0, or form = 'sqrt'"),
        ({"kind": kinds(name="large")}, "a name of its own"),
        ({"kind": kinds(batch_seconds=0.1)}, "kind 'small': 0.1 s an iteration is 0.1 s less than its transfers alone take"),
        ({"kind": []}, "at least one"),
        ({"model": "rings"}, "model"),
        ({"model": "ring", "server": None}, "model = 'ring' needs a section [ring]"),
        ({"server": None}, "model = 'spot' needs a section [server]"),
        ({"server": {**SPOT["server"], "bandwith": 1.0}}, "unknown key 'server.bandwith' (did you mean 'server.bandwidth'?)"),
        ({"server": {**SPOT["server"], "request": 0.0}}, "server: parameters, request, bandwidth and pcie are above 0"),
        ({"model": "ring", "ring": {**RING, "gamma": 11.0}}, "ring.gamma: 11 is not between 1 and 10"),
        ({"model": "ring", "ring": {**RING, "micro_batch": 65}}, "0 < micro_batch <= batch"),
        ({"model": "ring", "ring": {**RING, "alpha": -1.0}}, "alpha, beta and alpha_compute are not below 0"),
        ({"model": "ring", "ring": {**RING, "alpha_compute": 0.5}}, "kind 'small': 0.5 s are no more than ring.alpha_compute"),
        ({"model": "ring", "ring": RING, "loss": {**SPOT["loss"], "form": "sqrt"}}, "its form is 'synchronous'"),
        ({"loss": None}, "either [loss] g1, g3, g5 (g2, g4) or [[run]]"),
        ({"loss": {"g1": 1.0, "g3": 1.0}}, "g1, g3 and g5 go together"),
        ({"run": [{"steps": STEPS, "losses": losses(3.0), "batch": 1.0}]}, "either [loss] g1, g3, g5 (g2, g4) or [[run]]"),
        ({"loss": None, "run": [{"steps": STEPS, "losses": [1.0], "batch": 1.0}]}, "run 1: 12 steps and 1 losses"),
        ({"loss": None, "run": [{"steps": [1.0], "losses": [1.0], "mix": {"smal": 1}}]}, "unknown kind 'smal' (did you mean 'small'?)"),
        ({"loss": None, "run": [{"steps": [1.0], "losses": [1.0]}]}, "run 1: either a mix of kinds, or batch and shares"),
        ({"loss": None, "run": [{"steps": [1.0], "losses": [1.0], "mix": {"small": 0}}]}, "run 1: mix: counts"),
        ({"loss": None, "run": [{"steps": [-1.0], "losses": [1.0], "batch": 1.0}]}, "run 1: a step below 0"),
        ({"loss": None, "run": [{"steps": [1.0], "losses": [1.0], "batch": 1.0, "shares": [0.0]}]}, "run 1: shares and batch are above 0"),
        ({"loss": None, "run": [{"steps": [1.0], "losses": [1.0], "batch": 1.0}]}, "do not tell g4: give those of two, or form = 'sqrt'"),
        (
            {"loss": None, "run": [{"steps": [1.0], "losses": [1.0], "batch": 1.0, "shares": [1.0] * n} for n in (1, 2)]},
            "2 losses are too few for 4 coefficients: at least 8 are needed",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(changes: dict[str, Any], says: str, tmp_path: Path) -> None:
    path = written(tmp_path, **changes)
    with pytest.raises(InputError) as refused:
        load_profile(path)
    assert says in str(refused.value)
    assert str(refused.value).startswith(f"{path}: ")
    assert "\n" not in str(refused.value)


def test_runs_on_mixes_and_runs_with_shares_are_the_same_observations(tmp_path: Path) -> None:
    """Two small ones: 128 samples every 0.25 s, half each."""
    mixed = [
        {"steps": STEPS, "losses": losses(3.0), "mix": {"small": 1}},
        {"steps": STEPS, "losses": losses(4.0), "mix": {"small": 2}},
        {"steps": STEPS, "losses": losses(5.0), "mix": {"small": 1, "large": 1}},
    ]
    shared = [
        {"steps": STEPS, "losses": losses(3.0), "batch": 128.0},
        {"steps": STEPS, "losses": losses(4.0), "batch": 128.0, "shares": [0.5, 0.5]},
        {"steps": STEPS, "losses": losses(5.0), "batch": 192.0, "shares": [1.0, 2.0]},
    ]
    first, second = (load_profile(written(tmp_path, loss=None, run=each)) for each in (mixed, shared))
    for name in ("g1", "g2", "g3", "g4", "g5"):
        assert getattr(first.profile.loss, name) == pytest.approx(getattr(second.profile.loss, name), rel=1e-4)
    assert first.observed is not None
    assert first.observed.loss.min() == pytest.approx(min(losses(3.0)))
    assert first.profile.band is not None
    assert np.asarray(first.profile.band.g5).shape[1] == 1


def test_what_lies_beyond_the_observations_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen = {"steps": [5.0 * step for step in STEPS], "losses": losses(3.0, [5.0 * step for step in STEPS])}
    path = written(tmp_path, loss={"form": "sqrt"}, run=[{**seen, "mix": {"small": 1}}])
    assert run(commensal, ["plan", str(path), "--deadline", "10d", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == []
    assert run(commensal, ["plan", str(path), "--loss", "0.22", "--deadline", "10d", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == ["no loss below 0.2496 was seen: 0.22 is extrapolated"]
    only_large = written(tmp_path, loss={"form": "sqrt"}, run=[{**seen, "mix": {"small": 1}}], kind=kinds(quota=0))
    assert run(commensal, ["plan", str(only_large), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == ["a batch of 256 is extrapolated: those seen were 128 to 128"]


def test_plan_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(commensal, ["plan", str(EXAMPLES / "plan-resnet110.toml"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["plan"]["mix"] == {"g3.8xl": 5, "g3.16xl": 3}
    assert (report["plan"]["nodes"], report["plan"]["risk"], report["unit"]) == (8, None, "USD")
    assert report["goal"] == {"loss": 0.8, "deadline_seconds": 2600.0, "budget": None}
    assert any("best of all mixes" in each["why"] for each in report["alternatives"])


def test_options_replace_the_goal_of_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["plan", str(EXAMPLES / "plan-resnet110.toml"), "--loss", "0.9", "--deadline", "1.5h", "--budget", "3", "--json"]
    assert run(commensal, argv) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["goal"] == {"loss": 0.9, "deadline_seconds": 5400.0, "budget": 3.0}
    assert report["plan"]["seconds"] <= 5400.0
    assert report["plan"]["cost"] <= 3.0


def test_plan_of_a_ring_prints_a_table_with_its_band(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(commensal, ["plan", str(EXAMPLES / "plan-ring.toml")]) == 0
    said, header, cheapest, *rest = capsys.readouterr().out.splitlines()
    assert said == "loss 2.4, within 8h00m"
    assert header.split()[:2] == ["PLAN", "MIX"]
    assert "COST (node-hours)" in header
    assert cheapest.startswith("cheapest")
    assert " .. " in cheapest
    assert cheapest.endswith("%")
    assert any(line.startswith("risk at most 5%") for line in rest)
    assert "extrapolated" in rest[-1]


def test_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["plan", str(EXAMPLES / "plan-resnet110.toml"), "--budget", "6", "--plot"]
    assert run(commensal, [*argv, str(tmp_path / "plan.png")]) == 0
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    assert run(commensal, [*argv, str(tmp_path / "nowhere" / "plan.png")]) == 2
    assert "plan.png: cannot be written: No such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("--loss", "1.0"), 2, "loss 1 is outside the band: with 95% confidence"),
        (("--deadline", "10m"), 1, "reaches loss 2.4 in 600 s"),
        (("--deadline", "soon"), 2, "'soon' is not a time such as 2600, 45m or 12h"),
        (("--deadline", "0"), 2, "--deadline: expected more than 0, got 0"),
        (("--budget", "nan"), 2, "--budget: expected more than 0, got nan"),
    ],
)
def test_a_goal_that_cannot_be_is_refused(options: tuple[str, str], code: int, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(commensal, ["plan", str(EXAMPLES / "plan-ring.toml"), *options]) == code
    assert says in capsys.readouterr().err


def test_a_goal_is_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, goal=None)
    assert run(commensal, ["plan", str(path)]) == 2
    assert capsys.readouterr().err == f"error: {path}: no loss to reach; give --loss or [goal] loss\n"
    assert run(commensal, ["plan", str(path), "--loss", "0.8"]) == 0
