"""The coordinator's socket, with a peer of the same process."""

from __future__ import annotations

import asyncio
import time

import zmq

from commensal.messages import Dismiss, PilotHello, encode
from commensald.coordinator.switchboard import Arrival, Switchboard
from commensald.keys import KeyPair

DELIVERY_SECONDS = 0.1


def pair() -> KeyPair:
    public, secret = zmq.curve_keypair()
    return KeyPair(public=public.decode(), secret=secret.decode())


def test_a_message_that_comes_in_as_another_goes_out_is_received() -> None:
    """libzmq signals an arrival once, and sending takes note of the signal too (zmq_getsockopt(3), ZMQ_FD)."""

    async def play() -> None:
        ours, theirs = pair(), pair()
        board = Switchboard(ours, lambda key: key == theirs.public)
        port = board.bind("127.0.0.1", None)
        keys = asyncio.ensure_future(board.serve_keys())
        with zmq.Context() as context, context.socket(zmq.DEALER) as peer:
            peer.curve_serverkey, peer.curve_publickey, peer.curve_secretkey = (
                each.encode() for each in (ours.public, theirs.public, theirs.secret)
            )
            peer.linger = 0
            peer.connect(f"tcp://127.0.0.1:{port}")
            hello = encode(PilotHello(pilot="p", node="n", job="1", restarts=0))
            peer.send(hello)
            first = await asyncio.wait_for(board.receive(), 5.0)
            assert isinstance(first, Arrival)
            second = asyncio.ensure_future(board.receive())
            await asyncio.sleep(0)
            peer.send(hello)
            time.sleep(DELIVERY_SECONDS)  # it has arrived, and the loop has not looked yet
            board.send(first.peer, Dismiss(reason="none"))
            assert isinstance(await asyncio.wait_for(second, 5.0), Arrival)
        keys.cancel()
        await asyncio.gather(keys, return_exceptions=True)
        board.close()

    asyncio.run(play())
