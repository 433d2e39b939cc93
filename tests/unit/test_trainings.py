"""Training files: three keys are enough, and every mistake is one clear line."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from commensald.strict import InputError
from commensald.trainings import TrainingSpec, load_training, unused

ROOT = Path(__file__).parents[2]
LEAST = '[training]\nname = "digits"\nscript = "train.py"\nfolder = "out"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "out").mkdir()
    return tmp_path


def read(folder: Path, text: str) -> TrainingSpec:
    (folder / "t.toml").write_text(text)
    return load_training(folder / "t.toml", owner="ada")


def test_three_keys_are_enough(folder: Path) -> None:
    spec = read(folder, LEAST)
    assert (spec.name, spec.owner, spec.min_nodes, spec.max_nodes) == ("digits", "ada", 1, 8)
    assert spec.folder == str(folder / "out")
    assert spec.argv == (sys.executable, str(folder / "train.py"))


def test_everything_can_be_said(folder: Path) -> None:
    text = (ROOT / "config" / "examples" / "training.toml").read_text().replace('folder = "digits"', 'folder = "out"')
    (folder / "venv" / "bin").mkdir(parents=True)
    (folder / "venv" / "bin" / "python").symlink_to(sys.executable)
    spec = read(folder, "".join(line.removeprefix("#") if " = " in line else line for line in text.splitlines(keepends=True)))
    assert spec.python == str(folder / "venv" / "bin" / "python")
    assert spec.argv[2:] == ("--epochs", "10")
    assert spec.goal.deadline == 1_896_091_200.0
    assert spec.curve.samples_per_second[-1] == 6100.0
    assert spec.pilot.features == ("a100",)
    assert msgspec.json.decode(msgspec.json.encode(spec), type=TrainingSpec) == spec


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "key 'training' is missing"),
        ('[training]\nname = "a"\nscript = "train.py"\n', "key 'training.folder' is missing"),
        (LEAST + "nods = [1, 2]\n", "unknown key 'training.nods' (did you mean 'training.nodes'?)"),
        (LEAST + "nodes = 3\n", "training.nodes: expected array, got 3"),
        (LEAST + "nodes = [4, 2]\n", "training.nodes: expected [min, max] with 1 <= min <= max, got [4, 2]"),
        (LEAST + "nodes = [0, 2]\n", "training.nodes: expected [min, max] with 1 <= min <= max, got [0, 2]"),
        (LEAST + "weight = 0\n", "training.weight: expected a positive number, got 0.0"),
        (LEAST.replace("train.py", "gone.py"), "training.script: FOLDER/gone.py: no such file"),
        (LEAST.replace('"out"', '"gone"'), "training.folder: FOLDER/gone: no such folder"),
        (LEAST + 'python = "/nope"\n', "training.python: /nope: not an executable file"),
        (LEAST + 'python = "./train.py"\n', "training.python: FOLDER/train.py: not an executable file"),
        (LEAST.replace('"digits"', "7"), "training.name: expected str, got 7"),
        (LEAST + "[curve]\nnodes = [1, 2]\n", "curve: 2 nodes but 0 samples_per_second"),
        (LEAST + "[curve]\nnodes = [2, 1]\nsamples_per_second = [1, 2]\n", "curve.nodes: expected ascending counts from 1, got [2, 1]"),
        (LEAST + "[rescale]\nstall_seconds = -1\n", "rescale.stall_seconds: expected seconds, 0 or more, got -1.0"),
    ],
)
def test_a_mistake_is_one_clear_line(folder: Path, text: str, line: str) -> None:
    with pytest.raises(InputError) as caught:
        read(folder, text)
    assert str(caught.value) == f"{folder / 't.toml'}: {line.replace('FOLDER', str(folder))}"


@pytest.mark.parametrize("name", ["", "a b", "../up", ".hidden", "-v", "ä", "x" * 65, "a/b"])
def test_a_bad_name_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"training\.name: "):
        read(folder, LEAST.replace("digits", name))


def test_a_folder_that_cannot_be_written_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"training\.folder: /proc/self/fdinfo: not writable: "):
        read(folder, LEAST.replace('"out"', '"/proc/self/fdinfo"'))


def test_a_fresh_start_is_refused_where_checkpoints_are(folder: Path) -> None:
    fresh = LEAST + "resume = false\n"
    assert not read(folder, fresh).resume
    step = folder / "out" / "checkpoints" / "step-000000000007"
    step.mkdir(parents=True)
    assert not read(folder, fresh).resume
    (step / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match=r"training\.resume: false, but .* holds checkpoints"):
        read(folder, fresh)


def test_keys_that_nothing_looks_at_are_named(folder: Path) -> None:
    assert unused(read(folder, LEAST)) == ()
    assert unused(read(folder, LEAST + '[pilot]\naccount = "a"\ncpus = 4\n[goal]\nloss = 0.1\n')) == ("pilot.cpus",)
