"""The training process of a pilot: started so that it cannot outlive the launcher, its last words kept."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections import deque
from collections.abc import Mapping, Sequence

_PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None, use_errno=True).prctl
TAIL_LINES = 20
NOT_STARTED = 127
"""What a shell gives for a command that it cannot start."""


class Child:
    """A script running in our session. Its standard error passes through us; ``stderr`` is readable when it has said something.

    ``environment`` is whole, not an addition. Raises OSError when ``argv[0]`` cannot be run.
    """

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], folder: str) -> None:
        launcher = os.getpid()
        self._process = subprocess.Popen(
            argv, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=lambda: _die_with(launcher)
        )
        assert self._process.stderr is not None
        self.stderr = self._process.stderr.fileno()
        os.set_blocking(self.stderr, False)
        self._tail = bytearray()

    def returncode(self) -> int | None:
        """How it ended (minus the signal, if one ended it); ``None`` while it runs."""
        return self._process.poll()

    def listen(self) -> bool:
        """Pass on what it has said; False once nothing more can come."""
        while True:
            try:
                said = os.read(self.stderr, 65536)
            except BlockingIOError:
                return True
            if not said:
                return False
            os.write(2, said)
            self._tail = (self._tail + said)[-65536:]

    def terminate(self) -> None:
        """Ask it to end."""
        self._process.send_signal(signal.SIGTERM)

    def tail(self) -> str:
        """Its last lines."""
        return last_lines(self._tail.decode(errors="replace"))

    def close(self) -> None:
        """Give back the pipe; a process of the script's own may still hold the other end."""
        assert self._process.stderr is not None
        self._process.stderr.close()


def last_lines(text: str) -> str:
    """The last lines of ``text``, as many as a person reads."""
    return "\n".join(deque(text.splitlines(), maxlen=TAIL_LINES))


def _die_with(launcher: int) -> None:
    """Between fork and exec: be killed when the launcher dies, even if it has died just now (prctl(2))."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != launcher:
        os._exit(NOT_STARTED)
