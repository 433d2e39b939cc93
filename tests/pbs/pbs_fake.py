"""The fake as a process in a folder: started, spoilt, taken away, brought back, stopped by its pid file."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

HERE = Path(__file__).parent
KILL_DELAY_SECONDS = 5


class Fake:
    """Context manager."""

    def __init__(self, folder: Path, nodes: int = 4) -> None:
        self.folder, self._nodes = folder, nodes

    def __enter__(self) -> Self:
        self._run("up", "--nodes", str(self._nodes), "--guardian", str(os.getpid()))
        self.set("queue scavq kill_delay", str(KILL_DELAY_SECONDS))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._run("down")

    def _run(self, word: str, *options: str) -> None:
        command = [sys.executable, "-m", "fakepbs", word, str(self.folder), *options]
        subprocess.run(command, check=True, timeout=30, env={**os.environ, "PYTHONPATH": str(HERE)})

    def set(self, what: str, value: str) -> None:
        """``qmgr -c "set ..."``."""
        subprocess.run([self.folder / "bin" / "qmgr", "-c", f"set {what} = {value}"], check=True, timeout=30)

    def spoil(self, program: str, **fault: object) -> None:
        """From now on the program sleeps, cuts its answer, says something else, or ends with another code (fakepbs/client.py)."""
        (self.folder / "faults" / program).write_text(json.dumps(fault))

    def mend(self) -> None:
        """No faults, and the server is there."""
        shutil.rmtree(self.folder / "faults")
        (self.folder / "faults").mkdir()
        self.set("sched preempt_order", "R")

    def away(self, *, away: bool) -> None:
        """Take the server from its clients, as while it is restarted; jobs run on."""
        os.kill(int((self.folder / "pid").read_text()), signal.SIGUSR1 if away else signal.SIGUSR2)
