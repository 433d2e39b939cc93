"""The fake's process: the pure cluster with the real clock, real processes and a UNIX socket. SIGUSR1 takes the server away from its
clients, SIGUSR2 brings it back: jobs run on meanwhile, as they do while ``pbs_server`` is restarted."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path

import msgspec

from fakepbs.cluster import Cluster, Order
from fakepbs.mom import Mom
from fakepbs.programs import Programs
from fakepbs.protocol import Reply, Request
from fakepbs.site import Site

LIMIT_BYTES = 2**24
LOOK_SECONDS = 1.0


class Server:
    """One site in one folder."""

    def __init__(self, folder: Path, site: Site) -> None:
        self._folder, self._socket = folder, folder / "pbs.sock"
        self._cluster = Cluster(site)
        self._mom = Mom(folder, site, self._ended)
        self._programs = Programs(self._cluster, self._mom.signal)
        self._stop = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._listener: asyncio.Server | None = None

    async def run(self, guardian: int | None) -> None:
        """Serve until SIGTERM or SIGINT, or until the process ``guardian`` is gone; then end all jobs."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        loop.add_signal_handler(signal.SIGUSR1, self._close)
        loop.add_signal_handler(signal.SIGUSR2, lambda: loop.create_task(self._open()))
        await self._open()
        while not self._stop.is_set() and (guardian is None or Path(f"/proc/{guardian}").exists()):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), LOOK_SECONDS)
        self._stop.set()
        self._close()
        await self._mom.end_all()

    async def _open(self) -> None:
        self._listener = await asyncio.start_unix_server(self._serve, self._socket, limit=LIMIT_BYTES)
        self._turn()

    def _close(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            self._socket.unlink(missing_ok=True)

    def _turn(self) -> None:
        """One cycle of the scheduler, unless the server is away."""
        if self._stop.is_set() or self._listener is None:
            return
        now = time.time()
        if self._cluster.site.scheduling:
            for order in self._cluster.advance(now):
                self._carry_out(order)
        if self._timer is not None:
            self._timer.cancel()
        due = self._cluster.next_event(now)
        self._timer = None if due is None else asyncio.get_running_loop().call_later(max(0.0, due - now), self._turn)

    def _carry_out(self, order: Order) -> None:
        match order.verb:
            case "run":
                self._cluster.began(order.job, self._mom.run(self._cluster.jobs[order.job]))
            case "term" | "kill":
                self._mom.signal(order.job, order.verb.upper())
            case "stop" | "resume":
                self._mom.signal(order.job, "STOP" if order.verb == "stop" else "CONT")

    def _ended(self, job: str, exit_status: int) -> None:
        self._cluster.ended(job, exit_status, time.time())
        self._turn()

    def _show_times_in(self, zone: str | None) -> None:
        """PBS's clients print times as their own host sees them."""
        os.environ.pop("TZ", None)
        os.environ |= {"TZ": zone} if zone else {}
        time.tzset()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = msgspec.json.decode(await reader.readline(), type=Request)
            self._show_times_in(request.environment.get("TZ"))
            reply = self._programs.answer(request, time.time())
            writer.write(msgspec.json.encode(reply) + b"\n")
            await writer.drain()
            if reply.read is None and request.program not in ("qstat", "pbsnodes", "pbs_rstat"):
                self._turn()
        except (ConnectionError, ValueError) as error:
            writer.write(msgspec.json.encode(Reply(errors=f"fake: {error!r}\n", code=255)) + b"\n")
        finally:
            writer.close()
