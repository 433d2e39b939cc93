"""Any number of members merge into one ring, and nobody connects while somebody may connect to it."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commensal.ring.pairing import merges, port_address, proof

sizes = st.integers(1, 200)


@given(sizes)
def test_all_end_in_one_group(size: int) -> None:
    """Carried out in rounds, the merges join neighbouring groups of the expected size until one holds all, in order of rank."""
    groups = {rank: [rank] for rank in range(size)}
    pending = {rank: merges(rank, size) for rank in range(size)}
    while any(pending.values()):
        merge = min((rounds[0] for rounds in pending.values() if rounds), key=lambda merge: merge.high - merge.low)
        joined = groups[merge.low] + groups[merge.high]
        assert (joined[0], len(joined)) == (merge.low, merge.size)
        for rank in joined:
            assert pending[rank].pop(0) == merge
            groups[rank] = joined
    assert groups[0] == list(range(size))


@given(sizes)
def test_a_leader_connects_once_and_last(size: int) -> None:
    for rank in range(size):
        led = [merge for merge in merges(rank, size) if rank in (merge.low, merge.high)]
        assert all(merge.low == rank for merge in led[:-1])
        assert sum(merge.high == rank for merge in led) == (rank > 0)
        assert len(merges(rank, size)) <= (size - 1).bit_length()


@given(sizes)
def test_keys_are_distinct(size: int) -> None:
    opened = [merge.key for rank in range(size) for merge in merges(rank, size) if merge.low == rank]
    assert len(opened) == len(set(opened)) == size - 1


@given(st.ip_addresses(v=4), st.integers(0, 65535), st.sampled_from([b"", b"\0", b"vm\0"]))
def test_port_names_carry_their_address(address: object, port: int, host: bytes) -> None:
    """Encoded as MPICH does: upper-case hexadecimal, runs of zero bytes as [n]."""
    packed = socket.inet_aton(str(address))
    entry = host + b"\x02\x00" + port.to_bytes(2, "big") + packed + bytes(8)
    assert port_address(f"tag#3$connentry#{squeeze(entry)}$") == str(address)


def squeeze(entry: bytes) -> str:
    """Hexadecimal with every run of at least two zero bytes as [n]."""
    text, zeros = "", 0
    for byte in [*entry, None]:
        if byte == 0:
            zeros += 1
            continue
        text += "" if not zeros else "00" if zeros == 1 else f"[{zeros}]"
        text, zeros = text + ("" if byte is None else f"{byte:02X}"), 0
    return text


@pytest.mark.parametrize("port", ["", "rubbish", "tag#0$connentry#$", "tag#0$connentry#XYZ$", "tag#0$connentry#0002[4]$"])
def test_other_port_names_are_refused(port: str) -> None:
    with pytest.raises(ValueError, match="no IPv4 address"):
        port_address(port)


def test_real_port_name() -> None:
    """As MPICH 4.3.2 gave them, research/mpi2.md section 1a and this machine."""
    assert port_address("tag#0$connentry#766D000200A82F0A4D0003[8]$") == "10.77.0.3"
    assert port_address("tag#1$connentry#00020088437F[2]01[8]$") == "127.0.0.1"


def test_proofs_differ_by_nonce_pairing_and_side() -> None:
    cases = [("a", "0-1", "low"), ("b", "0-1", "low"), ("a", "0-2", "low"), ("a", "0-1", "high")]
    assert len({proof(*case) for case in cases}) == len(cases)
    assert {len(proof(*case)) for case in cases} == {32}
