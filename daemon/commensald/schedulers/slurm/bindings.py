"""pyslurm from the daemon's side: the helper process, asked over a pipe and never waited for beyond a time limit."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Mapping, Sequence

import msgspec

from commensald.schedulers import SchedulerError
from commensald.schedulers.slurm.helper import Reply
from commensald.schedulers.slurm.records import Record

LINE_BYTES = 1 << 30
"""Of one answer; some 500 bytes a job."""
ERROR_BYTES = 2000
HELPER = (sys.executable, "-m", "commensald.schedulers.slurm.helper")

_DECODER = msgspec.json.Decoder(Reply)


class BindingsError(SchedulerError):
    """pyslurm cannot be used; the command line can."""


class Bindings:
    """One helper. After a BindingsError it is dead and stays so."""

    def __init__(self, timeout_seconds: float, environment: Mapping[str, str], argv: Sequence[str] = HELPER) -> None:
        self._timeout_seconds, self._environment, self._argv = timeout_seconds, environment, argv
        self._process: asyncio.subprocess.Process | None = None
        self._errors: asyncio.Task[bytes] | None = None
        self._turn = asyncio.Lock()

    async def start(self, version: str) -> None:
        """Start the helper; it must have been built for ``version`` ("24.11.5"), to the second number. Raises BindingsError."""
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environment,
                limit=LINE_BYTES,
                start_new_session=True,
            )
        except OSError as error:
            raise BindingsError("pyslurm's helper cannot be started", error.strerror or "") from error
        self._errors = asyncio.create_task(_tail(self._process))
        built = (await self._hear()).version or ""
        if release(built) != release(version):
            await self.close()
            raise BindingsError(f"pyslurm {built} does not fit Slurm {version}")

    async def load(self, kind: str) -> list[Record]:
        """Records of all jobs, nodes, reservations or partitions. Raises BindingsError."""
        async with self._turn:
            process = self._process
            if process is None or process.stdin is None:
                raise BindingsError("pyslurm's helper has ended")
            try:
                process.stdin.write(f"{kind}\n".encode())
                await process.stdin.drain()
            except ConnectionError:
                raise await self._dead("has ended") from None
            return list((await self._hear()).records or [])

    async def close(self) -> None:
        """End the helper."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _hear(self) -> Reply:
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(self._timeout_seconds):
                line = await self._process.stdout.readline()
            reply = _DECODER.decode(line)
        except TimeoutError:
            raise await self._dead(f"gave no answer within {self._timeout_seconds:g} s") from None
        except (ValueError, msgspec.DecodeError):
            raise await self._dead("has ended" if not line else "gave an answer that cannot be read") from None
        if reply.error is not None:
            await self.close()
            raise BindingsError("pyslurm", reply.error)
        return reply

    async def _dead(self, what: str) -> BindingsError:
        """The helper is of no use any more; its last words say why."""
        await self.close()
        last = b"" if self._errors is None else await self._errors
        return BindingsError(f"pyslurm's helper {what}", last.decode(errors="replace").strip())


def release(version: str) -> tuple[str, ...]:
    """The numbers that must agree: structures change with the second, not with the third."""
    return tuple(number.lstrip("0") for number in version.split(".")[:2])


async def _tail(process: asyncio.subprocess.Process) -> bytes:
    """The end of what it writes to stderr, read all the time so that it never blocks."""
    assert process.stderr is not None
    tail = b""
    while chunk := await process.stderr.read(4096):
        tail = (tail + chunk)[-ERROR_BYTES:]
    return tail
