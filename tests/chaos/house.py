"""A whole house in a folder: configuration, embedded cluster, daemon, all real processes that can be killed and started again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from commensald import requests
from commensald.cli.ask import ask
from commensald.cli.lazy import Failed

DAEMON = [sys.executable, "-c", "from commensald.cli.daemon import main; main()"]
ASK = [sys.executable, "-c", "from commensald.cli.commensal import main; main()"]


class House:
    """A folder with a configuration, a cluster, and a daemon that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.socket = folder, folder / "d.sock"
        self._processes: list[subprocess.Popen[bytes]] = []
        (folder / "commensal.toml").write_text(
            f'[daemon]\nstate = "{folder}/state"\nsocket = "{self.socket}"\nbind = "127.0.0.1"\npoll_seconds = 0.1\n'
            f'events = "{folder}/events"\n[scheduler]\nsocket = "{folder}/c.sock"\n[pilots]\nfolder = "{folder}/pilots"\n'
            "[backoff]\nfirst_seconds = 60\n"
        )

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([*DAEMON, *words], stderr=(self.folder / "log").open("ab"))
        self._processes.append(process)
        return process

    def cluster(self) -> None:
        self.start("local-cluster", "--socket", f"{self.folder}/c.sock", "--nodes", "3", "--grace", "3")

    def daemon(self) -> subprocess.Popen[bytes]:
        return self.start("--config", f"{self.folder}/commensal.toml")

    def ready(self) -> bool:
        try:
            ask(self.socket, requests.Ping())
            return True
        except Failed:
            return False

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*ASK, "--socket", str(self.socket), *words], capture_output=True, text=True, timeout=90, check=False)

    def listing(self, *words: str) -> Any:  # noqa: ANN401 - JSON
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def pilots(self) -> dict[str, str]:
        status = ask(self.socket, requests.Status()).status
        assert status is not None
        return {each.uuid: each.state for each in status.pilots}

    def training(self, script: str, name: str = "t") -> Path:
        folder = self.folder / name
        folder.mkdir()
        (folder / "train.py").write_text(script)
        path = self.folder / f"{name}.toml"
        # Measured here, where all nodes are one machine, a second one would not pay.
        curve = "[curve]\nnodes = [1, 2]\nsamples_per_second = [1.0, 2.0]\n[rescale]\nstall_seconds = 0.1\nwarmup_seconds = 1.0\n"
        path.write_text(f'[training]\nname = "{name}"\nscript = "{name}/train.py"\nfolder = "{name}"\nnodes = [1, 2]\n{curve}')
        return path

    def events(self, kind: str) -> list[dict[str, Any]]:
        events = [json.loads(line) for line in (self.folder / "events").read_text().splitlines()]
        return [each for each in events if each["kind"] == kind]

    def close(self) -> None:
        for process in reversed(self._processes):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def until(what: Callable[[], bool], seconds: float = 20.0) -> None:
    give_up = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < give_up, f"still not after {seconds} s"
        time.sleep(0.02)
