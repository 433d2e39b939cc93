"""A real coordinator and real training processes, without a cluster: what tests of the ring are played on."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from commensald.coordinator import Limits, TrainingStatus
from commensald.coordinator.server import Coordinator
from commensald.keys import key_pair
from commensald.ledger import Ledger
from commensald.trainings import TrainingSpec

Result = TypeVar("Result")
LIMIT_SECONDS = 60.0


class Daemon:
    """A coordinator in a thread of its own, with its ledger."""

    def __init__(self, folder: Path, limits: Limits, emit: Callable[..., None]) -> None:
        self._folder, self._limits, self._emit = folder, limits, emit
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._ready.wait(10)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        state, pilots = self._folder / "state", self._folder / "pilots"
        pilots.mkdir(exist_ok=True)
        ledger = Ledger(state)
        self.rings = Coordinator(folder=state, ledger=ledger, emit=self._emit, limits=self._limits, bind="127.0.0.1", pilot_folder=pilots)
        await self.rings.start()
        self._ready.set()
        await self._stop.wait()
        await self.rings.close()
        ledger.close()

    def do(self, function: Callable[[], Result]) -> Result:
        """Call something of ``rings`` in its own thread."""

        async def call() -> Result:
            return function()

        return self.run(call())

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine there."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def close(self) -> None:
        """Stop it; members do not notice more than that it is gone."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)


class Stage:
    """One training called ``t``, whose script is ``script``, and its members."""

    def __init__(self, folder: Path, script: Path, limits: Limits | None = None, environment: Mapping[str, str] | None = None) -> None:
        self.folder, self.script = folder, script
        self.limits = limits or Limits()
        self.environment = dict(environment or {})
        self.home = folder / "training"
        self.home.mkdir()
        self._events: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self.members: dict[str, subprocess.Popen[bytes]] = {}
        self._born = 0
        self.start_daemon()

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for process in self.members.values():
            process.kill()
            process.wait(10)
        self.daemon.close()
        self.print_logs()

    def print_logs(self) -> None:
        """What members wrote and the daemon told, for the report of a failed test."""
        for log in sorted(self.folder.glob("*.log")):
            print(f"--- {log.name}\n{log.read_text()[-3000:]}")
        told = [event for kind, events in list(self._events.items()) if kind != "step" for event in events]
        for event in sorted(told, key=lambda event: float(event["at"])):
            print(event)

    # ---- the daemon

    def start_daemon(self) -> None:
        """Start it, or start it again."""

        def emit(kind: str, **fields: object) -> None:
            self._events[kind].append({"at": fields.pop("at", None) or time.time(), "kind": kind, **fields})

        self.daemon = Daemon(self.folder, self.limits, emit)
        spec = TrainingSpec(name="t", script=str(self.script), folder=str(self.home), python=sys.executable, max_nodes=8)
        self.daemon.do(lambda: self.daemon.rings.admit(spec, key_pair(self.home).public))

    def status(self) -> TrainingStatus:
        """What ``commensal status`` would show."""
        return self.daemon.do(lambda: self.daemon.rings.status("t"))

    def leave(self, name: str) -> None:
        """Let the daemon ask a member to leave."""
        nodes = frozenset(f"node-{member}" for member in self.members if member != name)
        self.daemon.do(lambda: self.daemon.rings.assign({"t": nodes}))

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Events of a kind so far: the list itself, which grows."""
        return self._events[kind]

    # ---- members

    def join(self, count: int = 1) -> list[str]:
        """Start members; gives their names."""
        names = [f"m{self._born + k}" for k in range(count)]
        self._born += count
        for name in names:
            self.members[name] = self._start(name)
        return names

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            **self.environment,
            "COMMENSAL_MEMBER": name,
            "COMMENSAL_PILOT": f"pilot-{name}",
            "COMMENSAL_TRAINING": "t",
            "COMMENSAL_NODE": f"node-{name}",
            "COMMENSAL_FOLDER": str(self.home),
            "COMMENSAL_CROWDED": "1",
        }
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, str(self.script)], env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.home
            )

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Send a signal to a member; a killed one is waited for."""
        self.members[name].send_signal(number)
        if number == signal.SIGKILL:
            self.members.pop(name).wait(10)

    def ended(self, name: str, seconds: float = LIMIT_SECONDS) -> int:
        """Wait for a member to end; gives its exit code."""
        return self.members.pop(name).wait(seconds)

    def wait(self, condition: Callable[[], bool], seconds: float = LIMIT_SECONDS) -> None:
        """Until ``condition()``. Raises TimeoutError, AssertionError when a member fails."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError("waited in vain")
            for name, process in self.members.items():
                assert process.poll() in (None, 0, 75), f"{name} ended with {process.returncode}"
            time.sleep(0.01)

    def wait_ring(self, size: int) -> None:
        """Until a ring of ``size`` has settled a step."""

        def steps() -> bool:
            last = self.of("generation")[-1:]
            if not last or len(last[0]["members"]) != size:
                return False
            return any(step["generation"] == last[0]["generation"] for step in self.of("step")[-100:])

        self.wait(steps)


class Gate:
    """Lets the ring go on, a step at a time, until something is true."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.open(1)

    def open(self, step: int) -> None:
        """The ring may settle this many steps."""
        self._step = step
        beside = self._path.with_suffix(".new")
        beside.write_text(str(step))
        beside.replace(self._path)

    def until(self, condition: Callable[[], bool], pause_seconds: float) -> None:
        """Open further, a step each ``pause_seconds``, until ``condition()``."""
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end
            self.open(self._step + 1)
            time.sleep(pause_seconds)
