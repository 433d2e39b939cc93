"""The control: the same operations through torch.distributed and gloo, to show what MPI costs. Only for a sidecar."""

from __future__ import annotations

import hmac
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed import Store, TCPStore  # type: ignore[attr-defined]

from commensal.ring.commands import Form
from commensal.ring.pairing import proof
from commensal.ring.transport import Bytes, Exchange, Refused, Words

PATIENCE = timedelta(hours=1)
"""A trainer that gives up kills its sidecar; the library's own time-outs must not come first."""


class Gloo:
    """The transport over gloo. Rank 0 keeps the TCPStore through which the others find each other."""

    def __init__(self, oversubscribed: bool) -> None:
        del oversubscribed  # gloo always sleeps while it waits
        torch.set_num_threads(1)
        self._size = 1

    def form(self, place: Form, exchange: Exchange) -> int | None:
        """Meet at rank 0's store, prove the nonce to each other, then connect all pairs. Has no ring of its own: returns ``None``."""
        self._size = place.size
        if place.size == 1:
            return None
        store = _host(place, exchange) if place.rank == 0 else _guest(place, exchange)
        dist.init_process_group("gloo", store=store, rank=place.rank, world_size=place.size, timeout=PATIENCE)
        return None

    def reduce(self, words: Words) -> None:
        """Sum over all members, in place."""
        if self._size > 1:
            dist.all_reduce(torch.from_numpy(words))

    def broadcast(self, window: Bytes, root: int) -> None:
        """Copy ``window`` from ``root`` to all, in place."""
        if self._size > 1:
            dist.broadcast(torch.from_numpy(window), root)

    def close(self) -> None:
        """Wait for all members, then let go."""
        if self._size > 1:
            dist.barrier()
            dist.destroy_process_group()


def _host(place: Form, exchange: Exchange) -> Store:
    address = place.addresses[0]
    store = TCPStore(address, 0, place.size, is_master=True, timeout=PATIENCE, wait_for_workers=False)
    for rank in range(1, place.size):
        exchange.offer(f"0-{rank}", rank, f"{address}:{store.port}")
    for rank in range(1, place.size):
        _require(store.get(f"guest/{rank}"), place, rank, "guest")
        store.set(f"host/{rank}", proof(place.nonce, str(rank), "host").hex())
    return store


def _guest(place: Form, exchange: Exchange) -> Store:
    address, _, port = exchange.take(f"0-{place.rank}").rpartition(":")
    if address != place.addresses[0]:
        raise Refused(f"the store is at {address}, not at rank 0's address {place.addresses[0]}")
    store = TCPStore(address, int(port), place.size, is_master=False, timeout=PATIENCE, wait_for_workers=False)
    store.set(f"guest/{place.rank}", proof(place.nonce, str(place.rank), "guest").hex())
    _require(store.get(f"host/{place.rank}"), place, place.rank, "host")
    return store


def _require(answer: bytes, place: Form, rank: int, side: str) -> None:
    if not hmac.compare_digest(answer, proof(place.nonce, str(rank), side).hex().encode()):
        raise Refused(f"the {side} in the pairing 0-{rank} is not of this generation")
