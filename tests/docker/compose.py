"""The cluster of containers (scripts/docker) as a test starts, asks and ends it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "scripts" / "docker"
BUILD_SECONDS = 900.0


class NoEngineError(Exception):
    """Nothing here can run containers; the text says what is missing."""


class Compose:
    """``docker compose`` for one project: the services of compose.yaml, with ``changes`` to them written into ``folder``."""

    def __init__(self, project: str, changes: dict[str, Any] | None = None, folder: Path | None = None) -> None:
        self._command = [*_engine(), "-p", project, "-f", str(FOLDER / "compose.yaml")]
        os.environ["BASE"] = _base()
        if changes is not None and folder is not None:
            override = folder / "compose.json"
            override.write_text(json.dumps(changes))
            self._command += ["-f", str(override)]

    def up(self) -> None:
        """Build what has changed and start what does not run."""
        self("build", "ctl", seconds=BUILD_SECONDS)
        self("up", "--detach", seconds=BUILD_SECONDS)

    def down(self) -> None:
        """Containers and volumes are gone afterwards."""
        self("down", "--volumes", "--timeout", "2", seconds=300.0)

    def inside(self, service: str, *argv: str, user: str = "root", options: Sequence[str] = (), seconds: float = 120.0) -> str:
        """What a command prints in a service's container. Raises CalledProcessError with its output."""
        return self(*self.words(service, *argv, user=user, options=options), seconds=seconds)

    def words(self, service: str, *argv: str, user: str = "root", options: Sequence[str] = ()) -> list[str]:
        """Of compose, for that."""
        return ["exec", "-T", "-u", user, *options, service, *argv]

    def argv(self, *words: str) -> list[str]:
        """The whole command line."""
        return [*self._command, *words]

    def __call__(self, *words: str, seconds: float = 120.0) -> str:
        done = _call(self.argv(*words), seconds)
        if done.returncode:
            error = subprocess.CalledProcessError(done.returncode, words, done.stdout, done.stderr)
            error.add_note(f"{done.stdout}\n{done.stderr}")
            raise error
        return done.stdout


def _engine() -> Sequence[str]:
    """The compose command, where an engine answers."""
    docker = shutil.which("docker")
    if docker is None or _call([docker, "version"], 20).returncode:
        raise NoEngineError("no container engine answers (scripts/docker/README.md says how to start one by hand)")
    if _call([docker, "compose", "version"], 20).returncode == 0:
        return (docker, "compose")
    old = shutil.which("docker-compose")
    if old is None:
        raise NoEngineError("docker has no compose")
    return (old,)


def _base() -> str:
    """debian:bookworm, or what `scripts/docker/prepare` made."""
    made = _call(["docker", "image", "inspect", "commensal-base:bookworm"], 20)
    return os.environ.get("BASE") or ("debian:bookworm" if made.returncode else "commensal-base:bookworm")


def _call(argv: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, cwd=FOLDER, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL, check=False)
