"""The wheel as a login node gets it: everything of the tree, nothing of torch."""

from __future__ import annotations

import configparser
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
ROOTS = {"commensald": ROOT / "daemon", "commensal": ROOT / "worker"}
DATA = {".py", ".toml", ".typed"}


def run(*argv: str | Path) -> str:
    done = subprocess.run([*map(str, argv)], capture_output=True, text=True, timeout=170, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pip(place: Path, *words: str | Path) -> str:
    return run(sys.executable, "-m", "pip", "--python", place / "python", *words)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the files that git knows, so that nothing left lying about gets in."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    listed = run("git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    for name in listed:
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", target, source)
    return next(target.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a fresh environment that holds the wheel and the daemon's dependencies, at the versions installed here."""
    place = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", "--without-pip", place)
    pins = place / "pins.txt"
    pins.write_text("".join(f"{name}=={version(name)}\n" for name in sorted(needed("commensal"))))
    pip(place / "bin", "install", "--quiet", "--constraint", pins, wheel)
    return place / "bin"


def needed(distribution: str) -> set[str]:
    """Names of what a distribution requires without extras, all the way down."""
    names: set[str] = set()
    for line in requires(distribution) or []:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            try:
                names |= {requirement.name, *needed(requirement.name)}
            except PackageNotFoundError:
                continue
    return names


def test_the_wheel_holds_what_the_tree_holds(wheel: Path) -> None:
    tree = {str(path.relative_to(root)) for name, root in ROOTS.items() for path in (root / name).rglob("*") if path.suffix in DATA}
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == tree


def test_every_package_is_listed() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    listed = set(setup["options"]["packages"].split())
    assert listed == {
        ".".join(path.parent.relative_to(root).parts) for name, root in ROOTS.items() for path in (root / name).rglob("__init__.py")
    }


def test_no_extra_that_ci_installs_contains_pyslurm() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    extras = dict(setup["options.extras_require"])
    assert "pyslurm" in extras.pop("slurm")
    assert not any("pyslurm" in lines or "commensal[slurm" in lines for lines in extras.values())


@pytest.mark.timeout(300)
def test_the_daemon_installs_and_runs_without_torch_or_mpi(installed: Path, tmp_path: Path) -> None:
    found = pip(installed, "list", "--format", "freeze")
    assert not {"torch", "mpi4py", "mpich"} & {line.split("==")[0].lower() for line in found.splitlines()}
    assert version("commensal") in run(installed / "commensald", "--version")
    config = tmp_path / "commensal.toml"
    config.write_text(f'[daemon]\nstate = "{tmp_path}"\n')
    run(installed / "commensal", "--config", config, "config", "check")


@pytest.mark.timeout(300)
def test_an_unknown_key_is_refused_with_the_nearest_one_and_exit_code_2(installed: Path, tmp_path: Path) -> None:
    config = tmp_path / "commensal.toml"
    config.write_text('[daemon]\nstaet = "/tmp"\n')
    done = subprocess.run(
        [installed / "commensal", "--config", config, "config", "check"],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 2
    assert "staet" in done.stderr
    assert "state" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
