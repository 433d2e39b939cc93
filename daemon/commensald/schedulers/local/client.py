"""The embedded cluster as a :class:`~commensald.schedulers.Scheduler`, and what tests and the demo do to it besides."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from commensald.cluster import Reservation, Snapshot
from commensald.schedulers import PilotSpec, SchedulerError
from commensald.schedulers.local import protocol

READY_POLL_SECONDS = 0.02

R = TypeVar("R", protocol.Shown, protocol.Submitted, protocol.Done)


class LocalScheduler:
    """A client of ``commensald local-cluster``; one connection a call, each call within ``timeout_seconds``."""

    def __init__(self, socket_path: Path | str, timeout_seconds: float = 5.0) -> None:
        self._path = Path(socket_path)
        self._timeout_seconds = timeout_seconds

    async def snapshot(self) -> Snapshot:
        """The whole cluster now."""
        return _expect(protocol.Shown, await self._ask(protocol.GetSnapshot())).snapshot

    async def submit(self, spec: PilotSpec) -> str:
        """Queue one pilot; gives its job id."""
        return _expect(protocol.Submitted, await self._ask(protocol.SubmitPilot(spec=spec))).id

    async def cancel(self, ids: Sequence[str]) -> None:
        """End these jobs; ids that are gone are no error."""
        await self._do(protocol.Cancel(ids=tuple(ids)))

    def rest_seconds(self) -> float:
        """It does not mind."""
        return 0.0

    async def close(self) -> None:
        """Nothing was started."""

    async def submit_primary(self, job: protocol.SubmitPrimary) -> str:
        """Queue a primary job; gives its id."""
        return _expect(protocol.Submitted, await self._ask(job)).id

    async def kill(self, job: str) -> None:
        """SIGKILL every process of a running job without notice."""
        await self._do(protocol.KillJob(id=job))

    async def reserve(self, reservation: Reservation) -> None:
        """Add a reservation, or replace the one of that name."""
        await self._do(protocol.Reserve(reservation=reservation))

    async def set_node(self, name: str, *, up: bool) -> None:
        """Bring a node up or down."""
        await self._do(protocol.SetNode(name=name, up=up))

    async def shutdown(self) -> None:
        """End all jobs and the cluster; returns when it has begun to."""
        await self._do(protocol.Shutdown())

    async def wait_ready(self, seconds: float) -> None:
        """Wait until the cluster answers. Raises the last :class:`SchedulerError` after so long."""
        clock = asyncio.get_running_loop()
        deadline = clock.time() + seconds
        while True:
            try:
                await self.snapshot()
                return
            except SchedulerError:
                if clock.time() > deadline:
                    raise
                await asyncio.sleep(READY_POLL_SECONDS)

    async def _do(self, request: protocol.Request) -> None:
        _expect(protocol.Done, await self._ask(request))

    async def _ask(self, request: protocol.Request) -> protocol.Reply:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                answer = await self._exchange(protocol.line(request))
        except TimeoutError as error:
            raise SchedulerError(f"{self._path}: no answer within {self._timeout_seconds:g} s") from error
        except (FileNotFoundError, ConnectionRefusedError) as error:
            start = f"commensald local-cluster --socket {self._path}"
            raise SchedulerError(f"{self._path}: no embedded cluster answers; start one with '{start}', or set scheduler.kind") from error
        except (OSError, ValueError) as error:
            raise SchedulerError(f"{self._path}: cannot be asked", str(error)) from error
        try:
            return protocol.REPLIES.decode(answer)
        except msgspec.DecodeError as error:
            raise SchedulerError(f"{self._path}: {error}", answer[:200].decode(errors="replace")) from error

    async def _exchange(self, line: bytes) -> bytes:
        reader, writer = await asyncio.open_unix_connection(self._path, limit=protocol.LINE_LIMIT_BYTES)
        try:
            writer.write(line)
            await writer.drain()
            return await reader.readline()
        finally:
            writer.close()


def _expect(kind: type[R], reply: protocol.Reply) -> R:
    if isinstance(reply, protocol.Refused):
        raise SchedulerError("the cluster refused", reply.error)
    if not isinstance(reply, kind):
        raise SchedulerError(f"expected {kind.__name__}", repr(reply))
    return reply
