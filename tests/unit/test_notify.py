"""Words to systemd, over a real datagram socket."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from commensald.notify import notify, watchdog_seconds


@pytest.mark.parametrize("abstract", [False, True])
def test_words_arrive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abstract: bool) -> None:
    name = f"@commensal-test-{tmp_path.name}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind("\0" + name[1:] if abstract else name)
        supervisor.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        notify("READY=1", "STATUS=ready")
        assert supervisor.recv(4096) == b"READY=1\nSTATUS=ready"


def test_a_supervisor_that_is_away_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    notify("READY=1")
    monkeypatch.delenv("NOTIFY_SOCKET")
    notify("READY=1")


def test_the_watchdog_is_fed_twice_as_often_as_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")
    assert watchdog_seconds() == 15.0
    monkeypatch.delenv("WATCHDOG_USEC")
    assert watchdog_seconds() is None
