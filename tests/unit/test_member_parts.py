"""Parts of a member: when it leaves, how a state travels through the window, who answers a probe."""

from __future__ import annotations

import socket

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from commensal.leaving import Verdict, reserve, verdict
from commensal.messages import Seat
from commensal.ring import probe, transfer
from commensal.state import blank, flatten, unflatten

QUIET = {"told": True, "holds_state": True, "others_stay": False, "saving": False, "remaining": None, "budget": 0.5}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"asked_ago": None}, Verdict.STAY),
        ({"asked_ago": 0.0, "told": False}, Verdict.ASK),
        ({"asked_ago": 0.0, "holds_state": False}, Verdict.GO),
        ({"asked_ago": 0.4, "others_stay": True}, Verdict.STAY),
        ({"asked_ago": 0.6, "others_stay": True}, Verdict.GO),
        ({"asked_ago": 5.0}, Verdict.STAY),
        ({"asked_ago": 5.0, "remaining": 0.2}, Verdict.GO),
        ({"asked_ago": 5.0, "remaining": 0.2, "saving": True}, Verdict.STAY),
    ],
)
def test_a_member_goes_when_others_have_its_state_or_time_is_up(changes: dict[str, object], expected: Verdict) -> None:
    assert verdict(**{**QUIET, **changes}) is expected  # type: ignore[arg-type]


def test_a_known_end_leaves_room_for_a_step_a_save_and_the_exit() -> None:
    assert reserve(save_seconds=2.0, step_seconds=1.0) > 3.0


class Box:
    """A replica that is nothing but tensors."""

    def __init__(self, tensors: dict[str, torch.Tensor]) -> None:
        self.tensors = tensors
        self.closed = 0
        self.signature = ""

    def export(self) -> tuple[bytes, list[torch.Tensor]]:
        header, tensors = flatten(self.tensors)
        return header, list(tensors)

    def blank(self, header: bytes) -> list[torch.Tensor]:
        return list(blank(header))

    def load(self, header: bytes, tensors: list[torch.Tensor]) -> None:
        self.tensors = unflatten(header, tensors)

    def resume(self, closed: int) -> None:
        raise NotImplementedError


@given(st.lists(st.integers(0, 40), max_size=6), st.integers(16, 200))
def test_a_state_arrives_as_it_was_sent_whatever_the_window(sizes: list[int], window_bytes: int) -> None:
    sent = Box({f"t{k}": torch.arange(size, dtype=torch.float64) * k for k, size in enumerate(sizes)})
    window, pieces = np.zeros(window_bytes, np.uint8), []
    transfer.send(sent, window, lambda size: pieces.append(window[:size].copy()))
    received, watched = Box({}), iter(list(pieces))
    queue = iter(pieces)

    def move(size: int) -> None:
        piece = next(queue)
        assert len(piece) == size
        window[:size] = piece

    transfer.receive(received, window, move)
    assert received.tensors.keys() == sent.tensors.keys()
    assert all(torch.equal(received.tensors[name], tensor) for name, tensor in sent.tensors.items())

    def look(size: int) -> None:
        piece = next(watched)
        assert len(piece) == size
        window[:size] = piece

    transfer.watch(window, look)
    assert next(watched, None) is None


def test_a_probe_tells_the_dead_from_the_living() -> None:
    living = probe.listen("127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    seats = (Seat("living", f"127.0.0.1:{living.getsockname()[1]}", 1.0), Seat("gone", f"127.0.0.1:{port}", 1.0))
    assert probe.unreachable(seats) == ("gone",)
    assert probe.dead(seats) == ("gone",)
    living.close()
