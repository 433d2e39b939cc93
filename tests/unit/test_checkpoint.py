"""Checkpoints: what was saved comes back bit by bit; what was not saved whole does not exist."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch import nn
from training_parts import adam_net, linear, make, run

from commensal import checkpoint
from commensal.checkpoint import SaveError, Snapshot
from commensal.manifest import CheckpointError
from commensal.messages import Generation
from commensal.state import StateError, blank, flatten, unflatten

GENERATION = Generation(3, 4)


def state(step: int, elements: int = 1000) -> Snapshot:
    header, tensors = flatten({"a": torch.full((elements,), float(step)), "b": torch.tensor(step), "c": torch.rand(3, 5).bfloat16()})
    return Snapshot(step=step, header=header, tensors=tensors, stall_seconds=0.0)


def save(folder: Path, taken: Snapshot, size: int = 1) -> Path | None:
    for rank in range(size):
        checkpoint.write_slice(taken, rank, size, GENERATION, folder)
    return checkpoint.try_manifest(folder, taken.step, GENERATION, size)


@contextmanager
def largest_file(size_bytes: int) -> Iterator[None]:
    """As a disk that is full beyond that size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def steps(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "checkpoints").iterdir())


def test_a_resumed_run_has_the_same_bits(tmp_path: Path) -> None:
    training, straight = adam_net(tmp_path / "straight", 7)
    run(training, straight)
    for end in (2, 4, 7):
        training, resumed = adam_net(tmp_path / "stops", end)
        run(training, resumed)
    assert training.closed == 7
    torch.testing.assert_close(straight.state_dict(), resumed.state_dict(), rtol=0, atol=0)


def test_a_finished_run_has_nothing_to_do(tmp_path: Path) -> None:
    run(*adam_net(tmp_path, 2))
    assert run(*adam_net(tmp_path, 2)) == []


def test_begins_anew_from_the_fresh_state(tmp_path: Path) -> None:
    training, model = adam_net(tmp_path, 3)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    run(training, model)
    training._replica.resume(0)
    assert training.closed == 0
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    training._replica.resume(3)
    assert training.closed == 3


@pytest.mark.parametrize("size", [1, 2, 5])
def test_any_number_of_writers(tmp_path: Path, size: int) -> None:
    taken = state(7)
    for rank in range(size):
        assert checkpoint.newest(tmp_path) is None
        assert checkpoint.try_manifest(tmp_path, 7, GENERATION, size) is None
        checkpoint.write_slice(taken, rank, size, GENERATION, tmp_path)
    manifest = checkpoint.try_manifest(tmp_path, 7, GENERATION, size)
    assert manifest is not None
    text = manifest.read_bytes()
    assert checkpoint.try_manifest(tmp_path, 7, GENERATION, size) == manifest
    assert manifest.read_bytes() == text
    header, tensors = checkpoint.load(checkpoint.find(tmp_path, 7))
    assert header == taken.header
    torch.testing.assert_close(tensors, list(taken.tensors), rtol=0, atol=0)


def test_another_generations_slices_do_not_count(tmp_path: Path) -> None:
    checkpoint.write_slice(state(7), 0, 2, Generation(3, 3), tmp_path)
    checkpoint.write_slice(state(7), 1, 2, GENERATION, tmp_path)
    assert checkpoint.try_manifest(tmp_path, 7, GENERATION, 2) is None


@pytest.mark.parametrize("damage", ["slice", "record", "missing", "manifest"])
def test_a_damaged_checkpoint_is_skipped_with_a_warning(tmp_path: Path, damage: str) -> None:
    save(tmp_path, state(1))
    home = save(tmp_path, state(2)).parent  # type: ignore[union-attr]
    stem = f"g{GENERATION}-0-of-1"
    path = home / {"slice": f"{stem}.safetensors", "record": f"{stem}.json", "missing": f"{stem}.json", "manifest": "manifest.json"}[damage]
    text = bytearray(path.read_bytes())
    text[len(text) // 2] ^= 1
    path.write_bytes(bytes(text) if damage != "manifest" else bytes(text[:-4]))
    if damage == "missing":
        path.unlink()
    with pytest.warns(UserWarning, match="skipping a damaged checkpoint.*000000000002"):
        found = checkpoint.newest(tmp_path)
    assert found is not None
    assert found.step == 1
    with pytest.raises(CheckpointError):
        checkpoint.find(tmp_path, 2)


def test_two_are_kept_and_what_lies_before_them_goes(tmp_path: Path) -> None:
    for step in (2, 4, 6):
        checkpoint.write_slice(state(step - 1), 0, 2, GENERATION, tmp_path)
        save(tmp_path, state(step))
    assert steps(tmp_path) == ["step-000000000004", "step-000000000006"]


def test_killed_at_every_stage_the_previous_one_is_there(tmp_path: Path) -> None:
    program = [sys.executable, str(Path(__file__).with_name("crashing_saves.py")), str(tmp_path)]
    lines = subprocess.run(program, capture_output=True, text=True, check=True, timeout=100).stdout.split("\n")[:-1]
    outcomes = [line.split() for line in lines]
    assert len(outcomes) > 30
    assert all(own == "True" for _, _, own in outcomes)
    newest = [step for _, step, _ in outcomes]
    assert newest[-1] == "2"
    assert newest == sorted(newest)
    assert newest.count("2") <= 5


def test_a_full_disk_keeps_the_previous_one_and_leaves_no_pieces(tmp_path: Path) -> None:
    save(tmp_path, state(1))
    with largest_file(4096), pytest.raises(SaveError, match=r"step 2 .*File too large") as caught:
        save(tmp_path, state(2, elements=5000))
    assert isinstance(caught.value.__cause__, OSError)
    assert steps(tmp_path) == ["step-000000000001"]
    assert checkpoint.find(tmp_path, 1).step == 1


def test_a_folder_that_cannot_be_written_is_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("file", "missing"):
        with pytest.raises(SaveError, match=f"folder='.*{name}': no such folder"):
            make(linear(), tmp_path / name, steps=1)
    assert not (tmp_path / "missing").exists()
    with pytest.raises(SaveError, match="folder='/proc/self/fdinfo' cannot be written: "):
        make(linear(), Path("/proc/self/fdinfo"), steps=1)


def test_a_save_that_fails_does_not_touch_the_same_steps_checkpoint(tmp_path: Path) -> None:
    taken = state(2, elements=5000)
    save(tmp_path, taken)
    with largest_file(4096), pytest.raises(SaveError):
        save(tmp_path, taken)
    assert checkpoint.find(tmp_path, 2).step == 2


def test_a_manifest_that_does_not_fit_gives_the_space_back(tmp_path: Path) -> None:
    save(tmp_path, state(1))
    checkpoint.write_slice(state(2), 0, 1, GENERATION, tmp_path)
    with largest_file(100), pytest.raises(SaveError, match="the manifest of step 2"):
        checkpoint.try_manifest(tmp_path, 2, GENERATION, 1)
    assert steps(tmp_path) == ["step-000000000001"]


def test_training_goes_on_when_a_save_fails_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = nn.Sequential(linear(), nn.Linear(3, 3))
    training = make(model, tmp_path, steps=6, checkpoint_seconds=0.0)
    batches = iter(training)
    for inputs, targets in batches:
        training.step(nn.functional.cross_entropy(model(inputs), targets))
        if training.closed == 3:
            break
    training._ring._saver.join()  # type: ignore[attr-defined]
    before = steps(tmp_path)
    with largest_file(64), pytest.raises(SaveError, match="step 6"):
        run(training, model)
    assert training.closed == 6
    assert steps(tmp_path) == before
    assert re.search(r"; that of step \d is kept", capsys.readouterr().err)


def test_a_first_save_that_fails_does_not_speak_of_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = linear()
    training = make(model, tmp_path, steps=1)
    with largest_file(64), pytest.raises(SaveError, match="step 1"):
        run(training, model)
    assert "there is no checkpoint yet" in capsys.readouterr().err


def test_what_json_cannot_say_is_refused_by_its_path() -> None:
    with pytest.raises(StateError, match=r"optimizer\.groups\[1\]\.rule is a function"):
        flatten({"optimizer": {"groups": [{"rule": 1}, {"rule": lambda: 1}]}})


def test_trees_come_back_as_they_were() -> None:
    tree = {"t": (1, [2.5, None], "x"), 3: {"$tuple": float("inf")}, "s": {1: torch.ones(2, 3), 0: torch.tensor(True)}, "e": {}}
    header, tensors = flatten(tree)
    again = unflatten(header, tensors)
    assert {**again, "s": 0} == {**tree, "s": 0}
    assert torch.equal(again["s"][1], torch.ones(2, 3))
    assert [tensor.shape for tensor in blank(header)] == [tensor.shape for tensor in tensors]


def test_a_foreign_state_is_refused(tmp_path: Path) -> None:
    run(*adam_net(tmp_path, 1))
    for options, named in (({}, f"^{tmp_path}/checkpoints: .*Sequential"), ({"seed": 4}, "seed 0")):
        model = linear()
        with pytest.raises(StateError, match=named):
            run(make(model, tmp_path, steps=1, **options), model)
