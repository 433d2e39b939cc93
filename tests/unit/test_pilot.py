"""The launcher as a real process against a real, encrypted ROUTER."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
import zmq

from commensal.messages import Assignment, Dismiss, Message, PilotDone, PilotHello, decode_to_daemon, encode

Found = PilotHello | PilotDone


class Router:
    """The daemon's end: binds, writes the rendezvous, keeps who spoke last."""

    def __init__(self, folder: Path, incarnation: int = 1) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        public, secret = zmq.curve_keypair()
        self._socket.curve_server = True
        self._socket.curve_secretkey = secret
        port = self._socket.bind_to_random_port("tcp://127.0.0.1")
        there = {"address": f"tcp://127.0.0.1:{port}", "server_key": public.decode(), "incarnation": incarnation}
        (folder / "coordinator.new").write_bytes(msgspec.json.encode(there))
        (folder / "coordinator.new").rename(folder / "coordinator.json")

    def wait(self, kind: type[Found], seconds: float = 10.0) -> Found:
        """The next message of ``kind``."""
        give_up = time.monotonic() + seconds
        while time.monotonic() < give_up:
            if self._socket.poll(100):
                self._peer, frame = self._socket.recv_multipart()
                message = decode_to_daemon(frame)
                if isinstance(message, kind):
                    return message
        raise AssertionError(f"no {kind.__name__} in {seconds} s")

    def send(self, message: Message) -> None:
        """To who spoke last."""
        self._socket.send_multipart([self._peer, encode(message)])

    def close(self) -> None:
        """Be gone at once."""
        self._socket.close(linger=0)
        self._context.term()


@pytest.fixture
def router(tmp_path: Path) -> Iterator[Router]:
    public, secret = zmq.curve_keypair()
    (tmp_path / "commensal.key").write_bytes(msgspec.json.encode({"public": public.decode(), "secret": secret.decode()}))
    there = Router(tmp_path)
    yield there
    there.close()


@pytest.fixture
def launcher(tmp_path: Path, router: Router) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "commensal.pilot", "--folder", str(tmp_path), "--pilot", "p1"],
        env={**os.environ, "COMMENSAL_NODE": "n7", "SLURM_JOB_ID": "42"},
        stderr=(tmp_path / "log").open("wb"),
        start_new_session=True,
    )
    yield process
    process.kill()
    process.wait()


def assignment(tmp_path: Path, script: str, member: str = "p1.1") -> Assignment:
    return Assignment(member=member, training="t", name="t", folder=str(tmp_path), argv=(sys.executable, "-c", script))


def wait_for(path: Path, seconds: float = 10.0) -> str:
    give_up = time.monotonic() + seconds
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < give_up, f"no {path}"
        time.sleep(0.01)
    return path.read_text()


def test_says_who_it_is(router: Router, launcher: subprocess.Popen[bytes]) -> None:
    assert router.wait(PilotHello) == PilotHello(pilot="p1", node="n7", job="42")


def test_runs_script_after_script_and_tells_how_each_ended(router: Router, launcher: subprocess.Popen[bytes], tmp_path: Path) -> None:
    router.wait(PilotHello)
    router.send(assignment(tmp_path, "import os; open('who', 'w').write(os.environ['COMMENSAL_MEMBER'] + os.environ['COMMENSAL_NODE'])"))
    assert router.wait(PilotDone) == PilotDone(pilot="p1", member="p1.1", training="t", returncode=0)
    assert (tmp_path / "who").read_text() == "p1.1n7"
    router.wait(PilotHello)
    router.send(assignment(tmp_path, "for i in range(100): print(i)\nraise ValueError('no good')", "p1.2"))
    done = router.wait(PilotDone)
    assert isinstance(done, PilotDone)
    assert (done.member, done.returncode) == ("p1.2", 1)
    assert done.tail.endswith("ValueError: no good")
    assert "ValueError: no good" in (tmp_path / "log").read_text()


def test_a_command_that_cannot_start_is_reported(router: Router, launcher: subprocess.Popen[bytes], tmp_path: Path) -> None:
    router.wait(PilotHello)
    router.send(Assignment(member="p1.1", training="t", name="t", folder=str(tmp_path), argv=("/no/such/python",)))
    done = router.wait(PilotDone)
    assert isinstance(done, PilotDone)
    assert done.returncode == 127
    assert "/no/such/python" in done.tail


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_without_a_child_ends_it_at_once(router: Router, launcher: subprocess.Popen[bytes], number: signal.Signals) -> None:
    router.wait(PilotHello)
    began = time.monotonic()
    launcher.send_signal(number)
    assert launcher.wait(timeout=5) == 0
    assert time.monotonic() - began < 1.0


def test_a_signal_waits_for_the_child(router: Router, launcher: subprocess.Popen[bytes], tmp_path: Path) -> None:
    router.wait(PilotHello)
    script = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(0)); open('up', 'w').write('1'); time.sleep(60)"
    router.send(assignment(tmp_path, script))
    wait_for(tmp_path / "up")
    time.sleep(1.0)
    os.killpg(launcher.pid, signal.SIGTERM)
    done = router.wait(PilotDone)
    assert isinstance(done, PilotDone)
    assert done.returncode == 0
    assert launcher.wait(timeout=5) == 0


def test_a_dismissed_pilot_ends_its_child_and_itself(router: Router, launcher: subprocess.Popen[bytes], tmp_path: Path) -> None:
    router.wait(PilotHello)
    router.send(assignment(tmp_path, "import time; open('up', 'w').write('1'); time.sleep(60)"))
    wait_for(tmp_path / "up")
    router.send(Dismiss(reason="not wanted"))
    done = router.wait(PilotDone)
    assert isinstance(done, PilotDone)
    assert done.returncode == -signal.SIGTERM
    assert launcher.wait(timeout=5) == 0


def test_a_killed_launcher_takes_the_child_with_it(router: Router, launcher: subprocess.Popen[bytes], tmp_path: Path) -> None:
    router.wait(PilotHello)
    router.send(assignment(tmp_path, "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)"))
    pid = int(wait_for(tmp_path / "pid"))
    launcher.kill()
    launcher.wait()
    give_up = time.monotonic() + 5
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < give_up
        time.sleep(0.01)


def test_finds_a_daemon_that_came_back_elsewhere(router: Router, launcher: subprocess.Popen[bytes], tmp_path: Path) -> None:
    router.wait(PilotHello)
    router.send(assignment(tmp_path, "import time; open('up', 'w').write('1'); time.sleep(1)"))
    wait_for(tmp_path / "up")
    router.close()
    again = Router(tmp_path, incarnation=2)
    try:
        assert again.wait(PilotDone) == PilotDone(pilot="p1", member="p1.1", training="t", returncode=0)
        assert again.wait(PilotHello)
    finally:
        again.close()


def test_a_requeued_pilot_ends_at_once(tmp_path: Path) -> None:
    environment = {**os.environ, "SLURM_RESTART_COUNT": "1"}
    command = [sys.executable, "-m", "commensal.pilot", "--folder", str(tmp_path), "--pilot", "p1"]
    assert subprocess.run(command, env=environment, timeout=20, check=False).returncode == 0


def test_starts_without_torch_or_mpi() -> None:
    code = "import sys, commensal.pilot; print([name for name in ('torch', 'mpi4py', 'numpy', 'asyncio') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True).stdout.strip() == "[]"


def test_a_child_that_the_signal_missed_is_told(router: Router, launcher: subprocess.Popen[bytes], tmp_path: Path) -> None:
    router.wait(PilotHello)
    router.send(assignment(tmp_path, "import time; time.sleep(60)"))
    while not psutil.Process(launcher.pid).children():
        time.sleep(0.001)
    launcher.send_signal(signal.SIGTERM)
    done = router.wait(PilotDone)
    assert isinstance(done, PilotDone)
    assert done.returncode == -signal.SIGTERM
    assert launcher.wait(timeout=5) == 0
