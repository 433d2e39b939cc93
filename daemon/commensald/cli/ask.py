"""Asking the daemon."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec

from commensald import requests
from commensald.cli.lazy import Failed
from commensald.strict import InputError

TIMEOUT_SECONDS = 10.0
_answer = msgspec.json.Decoder(requests.Answer)


def ask(path: Path, request: requests.Any) -> requests.Done:
    """The daemon's answer. Raises InputError where the request is at fault, Failed where the daemon is."""
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(TIMEOUT_SECONDS)
            line.connect(str(path))
            line.sendall(msgspec.json.encode(request) + b"\n")
            with line.makefile("rb") as replies:
                answer = _answer.decode(replies.readline())
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise Failed(f"no daemon answers at {path}: start commensald, or set daemon.socket") from error
    except (OSError, msgspec.DecodeError) as error:
        raise Failed(f"the daemon at {path} does not answer: {error}") from error
    if isinstance(answer, requests.Failure):
        raise InputError(answer.error) if answer.wrong_use else Failed(answer.error)
    return answer
