"""The embedded cluster's process: the pure core with the real clock, real processes and a UNIX socket.

It survives the daemon, as a batch scheduler does. Nothing here decides: requests and the ends of processes are told to the core,
its actions are carried out, and a timer waits for its next event.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import pwd
import re
import signal
import socket
import time
import uuid
from collections.abc import Iterator, Sequence

import msgspec

from commensald.events import Emit
from commensald.schedulers import PilotSpec
from commensald.schedulers.local import protocol
from commensald.schedulers.local.core import Core
from commensald.schedulers.local.jobs import (
    Action,
    Assign,
    Drop,
    JobSpec,
    Kill,
    Policy,
    Reason,
    RefusedError,
    Signal,
    Start,
)
from commensald.schedulers.local.running import Payload, Running
from commensald.schedulers.local.view import snapshot
from commensald.schedulers.local.workload import WorkloadJob

SHUTDOWN_PATIENCE_SECONDS = 1.0
PILOT_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
"""It becomes a file name."""


class Server:
    """One embedded cluster. ``workload`` yields primary jobs in the order of their ``at``."""

    def __init__(self, *, nodes: Sequence[str], policy: Policy, workload: Iterator[WorkloadJob], emit: Emit, version: str) -> None:
        self._core = Core(nodes, policy)
        self._workload = workload
        self._coming = next(workload, None)
        self._emit = emit
        self._version = version
        self._owner = pwd.getpwuid(os.getuid()).pw_name
        self._running = Running(emit, self._job_ended, uuid.uuid4().hex)
        self._payloads: dict[str, Payload] = {}
        self._count = 0
        self._began = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._stop = asyncio.Event()
        self._connections: set[asyncio.StreamWriter] = set()

    async def run(self, listener: socket.socket, duration_seconds: float | None) -> None:
        """Serve until SIGTERM, SIGINT, a shutdown request or the end of ``duration_seconds``; then end all jobs."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        server = await asyncio.start_unix_server(self._serve, sock=listener, limit=protocol.LINE_LIMIT_BYTES)
        self._began = time.time()
        self._emit("cluster.started", nodes=self._core.nodes, grace_seconds=self._core.policy.grace_seconds)
        self._turn()
        try:
            async with asyncio.timeout(duration_seconds):
                await self._stop.wait()
        except TimeoutError:
            self._stop.set()
        server.close()
        for connection in tuple(self._connections):
            connection.close()
        while self._connections:
            await asyncio.sleep(0)
        await self._running.end_all(SHUTDOWN_PATIENCE_SECONDS)

    # The core's turn

    def _turn(self) -> None:
        """Tell the core the time, carry out what it says, wait for what comes next."""
        if self._stop.is_set():
            return
        now = time.time()
        self._feed(now)
        for kind, actions in itertools.groupby(self._core.advance(now), key=type):
            if kind is Signal:
                self._running.signal_all(action for action in actions if isinstance(action, Signal))
            else:
                for action in actions:
                    self._act(action, now)
        self._wait(now)

    def _feed(self, now: float) -> None:
        while self._coming is not None and self._began + self._coming.at <= now:
            job = self._coming
            self._coming = next(self._workload, None)
            spec = JobSpec(id=self._next_id(), name=job.name, owner=job.owner, node_count=job.node_count, time_limit=job.time_limit)
            self._submit(Payload(spec=spec, seconds=job.seconds), now)

    def _wait(self, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        moments = [self._core.next_event(now), None if self._coming is None else self._began + self._coming.at]
        due = [at for at in moments if at is not None]
        self._timer = asyncio.get_running_loop().call_later(max(0.0, min(due) - now), self._turn) if due else None

    def _act(self, action: Action, now: float) -> None:
        pilot = self._payloads[action.job].spec.pilot
        match action:
            case Assign():
                self._emit("job.assigned", at=now, job=action.job, pilot=pilot, nodes=action.nodes)
            case Start():
                self._running.start(self._payloads[action.job], action.nodes, now, action.end)
            case Kill():
                self._running.kill(action.job, action.reason)
            case Drop():
                del self._payloads[action.job]
                self._emit("job.ended", job=action.job, pilot=pilot, nodes=(), reason=action.reason, returncode=None)

    def _job_ended(self, job: str) -> None:
        del self._payloads[job]
        self._core.ended(job)
        self._turn()

    def _next_id(self) -> str:
        self._count += 1
        return str(self._count)

    def _submit(self, payload: Payload, now: float) -> str:
        spec = payload.spec
        self._core.submit(spec, now)
        self._payloads[spec.id] = payload
        self._emit("job.submitted", job=spec.id, name=spec.name, node_count=spec.node_count, time_limit=spec.time_limit, pilot=spec.pilot)
        return spec.id

    # Requests

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            while request := await reader.readline():
                writer.write(protocol.line(self._answer(request)))
                await writer.drain()
        except (ConnectionError, ValueError):
            pass
        finally:
            self._connections.discard(writer)
            writer.close()

    def _answer(self, line: bytes) -> protocol.Reply:
        try:
            request = protocol.REQUESTS.decode(line)
            reply = self._carry_out(request, time.time())
        except (RefusedError, msgspec.DecodeError) as error:
            return protocol.Refused(error=str(error))
        if not isinstance(request, protocol.GetSnapshot):
            self._turn()
        return reply

    def _carry_out(self, request: protocol.Request, now: float) -> protocol.Reply:
        match request:
            case protocol.GetSnapshot():
                return protocol.Shown(snapshot=snapshot(self._core, now, self._version))
            case protocol.SubmitPilot():
                return protocol.Submitted(id=self._submit(self._pilot(request.spec), now))
            case protocol.SubmitPrimary():
                return protocol.Submitted(id=self._submit(self._primary(request), now))
            case protocol.Cancel():
                for job in request.ids:
                    self._core.cancel(job, now)
            case protocol.KillJob():
                self._kill(request.id)
            case protocol.Reserve():
                self._reserve(request)
            case protocol.SetNode():
                self._core.set_node(request.name, up=request.up)
                self._emit("node.state", node=request.name, state="IDLE" if request.up else "DOWN")
            case protocol.Shutdown():
                self._stop.set()
        return protocol.Done()

    def _kill(self, job: str) -> None:
        if job not in self._running:
            raise RefusedError(f"job {job} does not run")
        self._running.kill(job, Reason.INJECTED)

    def _reserve(self, request: protocol.Reserve) -> None:
        reservation = request.reservation
        self._core.reserve(reservation)
        nodes = sorted(reservation.nodes)
        self._emit("reservation", name=reservation.name, nodes=nodes, start=reservation.start, end=reservation.end)

    def _pilot(self, pilot: PilotSpec) -> Payload:
        if not PILOT_NAME.fullmatch(pilot.uuid):
            raise RefusedError(f"pilot {pilot.uuid!r}: a uuid is letters, digits, '.', '_' and '-'")
        if not pilot.argv:
            raise RefusedError(f"pilot {pilot.uuid} has no command")
        if not os.access(pilot.folder, os.W_OK | os.X_OK):
            raise RefusedError(f"pilot {pilot.uuid}: cannot write to folder {pilot.folder}")
        spec = JobSpec(
            id=self._next_id(), name="commensal", owner=self._owner, time_limit=pilot.time_limit, pilot=pilot.uuid, node=pilot.node
        )
        return Payload(spec=spec, pilot=pilot)

    def _primary(self, request: protocol.SubmitPrimary) -> Payload:
        spec = JobSpec(
            id=self._next_id(),
            name=request.name,
            owner=request.owner,
            node_count=request.node_count,
            time_limit=request.time_limit,
            tier=request.tier,
            priority=request.priority,
        )
        return Payload(spec=spec, seconds=request.seconds)
