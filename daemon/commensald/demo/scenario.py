"""What the demo sets up: a folder with a configuration and two trainings, checked by the same code as anybody's."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import toml

ENDLESS_STEPS = 10_000_000
END_SECONDS = 30.0
"""What the demo takes to begin and to end, beside its clock."""
TRAININGS = {"digits-convnet": "digits_convnet.py", "digits-mlp": "digits_mlp.py"}
CURVE_NODES = (1, 2, 4, 8)
CURVES = {"digits-convnet": (4000.0, 7800.0, 15000.0, 28000.0), "digits-mlp": (8000.0, 11000.0, 14000.0, 16000.0)}
"""Samples per second as on nodes with processors of their own: the convnet computes much and sends little, the perceptron the reverse.

The demo's virtual nodes share one machine; a curve measured there would teach the daemon to use one node.
"""
RESCALE = {"stall_seconds": 0.2, "warmup_seconds": 3.0}
"""Likewise: here eight processes import torch on two cores."""


ARGUMENTS = {"digits-convnet": ("--batch", "128", "512")}
"""Its batch is elastic: the daemon chooses it with the nodes."""
GOALS = {"digits-mlp": {"loss": 0.01}}
"""With the end of the demo for its deadline; when it is reached the training ends and its nodes go to the other."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """The demo's choices; ``seconds`` and ``grace_seconds`` are wall seconds."""

    folder: Path
    nodes: int
    seconds: float
    speedup: float
    seed: int
    trace: Path | None
    grace_seconds: float = 10.0

    @property
    def config(self) -> Path:
        """The daemon's configuration: ``commensal --config FILE status`` works from another terminal."""
        return self.folder / "commensal.toml"

    @property
    def cluster_socket(self) -> Path:
        """Where the embedded cluster listens."""
        return self.folder / "cluster.sock"

    @property
    def daemon_socket(self) -> Path:
        """Where the daemon listens."""
        return self.folder / "commensald.sock"

    def log(self, name: str) -> Path:
        """The event log of cluster, daemon or demo."""
        return self.folder / f"{name}.events.jsonl"

    def output(self, name: str) -> Path:
        """What the process ``name`` printed."""
        return self.folder / f"{name}.log"

    def training_file(self, name: str) -> Path:
        """What is submitted."""
        return self.folder / f"{name}.toml"

    def cluster_arguments(self) -> list[str]:
        """Arguments of ``commensald local-cluster``."""
        load = ["--generate", str(self.seed)] if self.trace is None else ["--trace", str(self.trace)]
        options = {
            "--socket": self.cluster_socket,
            "--nodes": self.nodes,
            "--speedup": self.speedup,
            "--grace": self.grace_seconds,
            "--events": self.log("cluster"),
        }
        return ["local-cluster", *load, *(str(word) for option in options.items() for word in option)]


def write(scenario: Scenario, now: float) -> None:
    """Write the configuration and the training files; ``now`` in epoch seconds. Raises OSError when the folder cannot be written."""
    _write_toml(scenario.config, _config(scenario))
    for name, script in TRAININGS.items():
        (scenario.folder / "trainings" / name).mkdir(parents=True)
        _write_toml(scenario.training_file(name), _training(scenario, name, script, now))


def _config(scenario: Scenario) -> dict[str, Mapping[str, object]]:
    return {
        "daemon": {
            "state": str(scenario.folder / "state"),
            "socket": str(scenario.daemon_socket),
            "bind": "127.0.0.1",
            "events": str(scenario.log("daemon")),
            "poll_seconds": 0.25,
            "stale_seconds": 5.0,
        },
        "scheduler": {"kind": "local", "socket": str(scenario.cluster_socket)},
        "pilots": {"folder": str(scenario.folder / "pilots"), "python": sys.executable, "environment": {"OMP_NUM_THREADS": "1"}},
        "allocate": {"look_ahead_seconds": 30.0},
        # Eight nodes share this machine's cores, so a ring forms slowly: who has to leave does not wait for it.
        "ring": {"exit_budget": 0.25},
    }


def _training(scenario: Scenario, name: str, script: str, now: float) -> dict[str, Mapping[str, object]]:
    counts = [count for count in CURVE_NODES if count <= scenario.nodes]
    return {
        "training": {
            "name": name,
            "script": str(examples() / script),
            "args": ["--steps", str(ENDLESS_STEPS), *ARGUMENTS.get(name, ())],
            "folder": str(scenario.folder / "trainings" / name),
            "nodes": [1, scenario.nodes],
        },
        "curve": {"nodes": counts, "samples_per_second": list(CURVES[name][: len(counts)])},
        "rescale": RESCALE,
        **({"goal": {**GOALS[name], "deadline": now + scenario.seconds + END_SECONDS}} if name in GOALS else {}),
    }


def examples() -> Path:
    """The folder of the example trainings, found without importing what they import."""
    spec = importlib.util.find_spec("commensal")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("the package commensal is not installed")
    return Path(next(iter(spec.submodule_search_locations))) / "examples"


def _write_toml(path: Path, tables: Mapping[str, Mapping[str, object]]) -> None:
    path.write_text(toml.dumps(tables), encoding="utf-8")
