"""One-way messages go whether they are awaited or not; one that cannot be sent is raised or logged, against a scripted node."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Iterator

import msgspec
import pytest
from actors import Counter
from peer import Peer, hosting

import greenroom as gr
from greenroom import frames, host
from greenroom.frames import frame, text, varint


@pytest.fixture(autouse=True)
def nothing_is_forgotten() -> Iterator[None]:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        yield
        gc.collect()
    assert not [str(one.message) for one in warned if "never awaited" in str(one.message)]


async def sent(peer: Peer) -> tuple[int, str, int]:
    request, _, key, arguments = await peer.called()
    return request, key, arguments["by"]


async def test_what_is_sent_without_a_lane_goes_with_the_next_one(peer: Peer) -> None:
    async with hosting(peer) as client:
        await without_a_lane(peer, client)
        _ = client.send(Counter, "unawaited").add(1)
        awaited = client.send(Counter, "awaited").add(2)
        await awaited
        assert sorted([await sent(peer), await sent(peer)]) == [(0, "awaited", 2), (0, "unawaited", 1)]


async def test_what_cannot_be_sent_is_logged_if_nobody_awaits_it(
    peer: Peer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(host, "PATIENCE", 0.01)
    async with hosting(peer) as client:
        await peer.stop()
        await without_a_lane(peer, client)
        with pytest.raises(gr.Refused, match="Unreachable"):
            await client.send(Counter, "awaited").add(1)
        assert "was not sent" not in caplog.text
        _ = client.send(Counter, "unawaited").add(2)
        while "the one-way message counter/unawaited.add was not sent, and nobody awaits it: Unreachable" not in caplog.text:
            await asyncio.sleep(0.01)


async def test_what_waits_for_room_on_a_lane_that_is_lost_is_logged(peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    peer.window = 1
    async with hosting(peer) as client:
        _ = client.send(Counter, "first").add(1)
        _ = client.send(Counter, "second").add(2)
        await sent(peer)
        peer.say(frame(frames.GOODBYE, b"\0", text("")))
        while "the one-way message counter/second.add was not sent" not in caplog.text:
            await asyncio.sleep(0.01)


async def test_what_still_waits_when_its_client_is_closed_is_logged(peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    async with hosting(peer) as client:
        await peer.stop()
        await without_a_lane(peer, client)
        _ = client.send(Counter, "late").add(1)
        await asyncio.sleep(0)
    while "counter/late.add was not sent, and nobody awaits it: Unreachable" not in caplog.text:
        await asyncio.sleep(0.01)
    assert "this client is closed" in caplog.text


class Sender(gr.Actor, reliable=True):
    async def pay(self) -> None:  # 0
        _ = self.cx.send(Counter, "first").add(1)
        _ = self.cx.send("counter", "second").add(by="x" * (9 << 20))


async def test_a_reliable_turn_whose_message_cannot_be_sent_fails_although_nobody_awaits_that(peer: Peer) -> None:
    peer.window = 1
    async with hosting(peer, Sender):
        await peer.seat()
        turn = peer.turn(0)
        await sent(peer)
        peer.say(frame(frames.CREDIT, varint(1 << 20)))
        status, value, _ = await peer.end(turn)
        assert status == frames.PANICKED and "Refused: Unsendable" in value["Unknown"]["Panicked"]["message"]


async def without_a_lane(peer: Peer, client: gr.Host) -> None:
    (session,) = client.sessions.values()
    peer.joined.clear()
    peer.say(frame(frames.GOODBYE, b"\0", text("")))
    while client.lane_now("counter", "x") is not None:
        await asyncio.sleep(0)
    assert session.lanes[0].dead


async def test_a_client_without_asyncio_sends_as_others_do(peer: Peer) -> None:
    await peer.listen()
    client = await asyncio.to_thread(gr.connect_sync, peer.url)
    _ = client.send(Counter, "unawaited").add(1)
    assert await sent(peer) == (0, "unawaited", 1)
    await asyncio.to_thread(client.run, client.send(Counter, "awaited").add(2))
    assert await sent(peer) == (0, "awaited", 2)
    await asyncio.to_thread(client.close)
    await asyncio.to_thread(client.close)
    with pytest.raises(gr.Refused, match="this client is closed"):
        _ = client.send(Counter, "closed").add(3)
    with pytest.raises(gr.Refused, match="this client is closed"):
        client.run(client.ref(Counter, "closed").add(3))
    await peer.stop()


async def test_a_call_that_is_over_the_bound_takes_nothing_with_it(peer: Peer) -> None:
    async with hosting(peer) as client:
        with pytest.raises(gr.Refused, match="Unsendable"):
            await client.ref("counter", "c").add(by="x" * (9 << 20))
        call = asyncio.ensure_future(client.ref(Counter, "c").add(1))
        request, *_ = await peer.called()
        peer.say(frame(frames.REPLY, varint(request), b"\0", b"\1\1" + msgspec.msgpack.encode(7)))
        assert await call == 7
