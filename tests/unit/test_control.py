"""The control socket, over a real socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from commensald import requests
from commensald.cli.ask import ask
from commensald.cli.lazy import Failed
from commensald.control import LINE_LIMIT_BYTES, Control, allowed
from commensald.strict import InputError


def answer(request: requests.Any) -> requests.Done:
    if isinstance(request, requests.Pause):
        raise InputError(f"no training named {request.training}")
    return requests.Done()


def serving(path: Path, then: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        control = Control(path, answer)
        await control.start()
        try:
            await then()
        finally:
            await control.close()

    asyncio.run(run())


def raw(path: Path, line: bytes) -> dict[str, object]:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(str(path))
        client.sendall(line)
        answer: dict[str, object] = json.loads(client.makefile("rb").readline())
        return answer


def test_answers_and_refuses(tmp_path: Path) -> None:
    path = tmp_path / "run" / "s.sock"

    async def then() -> None:
        assert await asyncio.to_thread(ask, path, requests.Ping()) == requests.Done()
        with pytest.raises(InputError, match="no training named t"):
            await asyncio.to_thread(ask, path, requests.Pause(training="t"))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

    serving(path, then)
    assert not path.exists()


@pytest.mark.parametrize("line", [b"\n", b"{}\n", b'{"type": "reboot"}\n', b'{"type": "pause"}\n', b'{"type":"ping","x":1}\n', b"\xff\n"])
def test_nonsense_is_answered_with_an_error(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "s.sock"

    async def then() -> None:
        reply = await asyncio.to_thread(raw, path, line)
        assert (reply["type"], reply["wrong_use"]) == ("failure", True)

    serving(path, then)


def test_an_endless_line_ends_only_its_own_connection(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"

    async def then() -> None:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"x" * (LINE_LIMIT_BYTES * 3))
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
        assert await asyncio.to_thread(ask, path, requests.Ping()) == requests.Done()

    serving(path, then)


def test_a_busy_socket_is_refused_and_a_dead_one_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"

    async def then() -> None:
        with pytest.raises(InputError, match="another server answers on this socket"):
            await Control(path, answer).start()

    serving(path, then)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    serving(path, lambda: asyncio.sleep(0))


def test_what_is_not_a_socket_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(InputError, match=r"notes: exists and is not a socket"):
        serving(tmp_path / "notes", lambda: asyncio.sleep(0))
    assert (tmp_path / "notes").read_text() == "mine"


def test_a_socket_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x{120}: AF_UNIX path too long"):
        serving(tmp_path / ("x" * 120), lambda: asyncio.sleep(0))
    with pytest.raises(InputError, match=r"/proc/none: No such file"):
        serving(Path("/proc/none/s.sock"), lambda: asyncio.sleep(0))


def test_a_daemon_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="no daemon answers at"):
        ask(tmp_path / "s.sock", requests.Ping())


def test_only_our_own_account_is_let_in() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert allowed(ours)
