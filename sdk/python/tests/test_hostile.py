"""What a node says that it should not ends a call, a turn or a lane, and hangs nothing, against a scripted node."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from actors import Slow
from peer import Peer, hosting

import greenroom as gr
from greenroom import frames
from greenroom.frames import frame, text, varint

DEEP = b"\x01\x01" + b"\x91" * 5000 + b"\xc0"
VALUES = {
    "deep": DEEP,
    "deep json": b"\x02\x01" + b"[" * 5000 + b"]" * 5000,
    "no utf-8": b"\x01\x01\x81\xa4what\xa2\xff\xfe",
    "no utf-8 in json": b'\x02\x01{"what": "\xff"}',
    "half a pair": b"\x01\x01\xa3\xed\xa0\x80",
    "half a pair in json": b'\x02\x01"\\ud800"',
    "huge array": b"\x01\x01\xdd\xff\xff\xff\xff",
    "huge text": b"\x01\x01\xdb\xff\xff\xff\xff",
    "huge map": b"\x01\x01\xdf\xff\xff\xff\xff",
    "deep and unknown": b"\x01\x01\x82\xa4what\x01\xa5other" + DEEP[2:],
    "no codec": b"\x07\x01\xc0",
    "nothing": b"",
}


class Open(gr.Actor):
    async def take(self, what: Any) -> Any:  # 1
        return what

    async def run(self) -> int:  # 0
        return 1

    @gr.read
    async def ticks(self) -> AsyncIterator[int]:  # 2
        yield 1


@pytest.mark.parametrize("payload", VALUES.values(), ids=VALUES.keys())
async def test_arguments_that_cannot_be_read_are_refused_and_the_lane_stays(peer: Peer, payload: bytes) -> None:
    async with hosting(peer, Open) as host:
        await peer.seat()
        status, value, _ = await peer.end(peer.turn(1, payload=payload))
        assert status == frames.INVALID and value["Refused"]["Invalid"]["message"]
        assert (await peer.call(0))[:2] == (0, 1)
        assert not next(iter(host.sessions.values())).lanes[0].dead


@pytest.mark.parametrize("payload", VALUES.values(), ids=VALUES.keys())
@pytest.mark.parametrize("status", [frames.OK, frames.ACTOR_ERROR, frames.UNKNOWN])
async def test_an_answer_that_cannot_be_read_is_unreadable_for_its_caller_alone(peer: Peer, payload: bytes, status: int) -> None:
    async with hosting(peer) as client:
        for ref in (client.ref(Open, "o"), client.ref("open", "o")):
            call = asyncio.ensure_future(ref.run())
            request, *_ = await peer.called()
            peer.say(frame(frames.REPLY, varint(request), bytes((status,)), payload))
            with pytest.raises(gr.Unknown) as raised:
                await call
            assert raised.value.reason == "Unreadable"
        assert not next(iter(client.sessions.values())).lanes[0].dead


@pytest.mark.parametrize("where", ["name", "item", "end"])
async def test_a_stream_that_cannot_be_read_is_unreadable_for_its_consumer_alone(peer: Peer, where: str) -> None:
    async with hosting(peer) as client:
        items = client.ref(Open, "o").ticks()
        first = asyncio.ensure_future(anext(items))
        request, *_ = await peer.called()
        if where == "name":
            peer.say(frame(frames.REPLY, varint(request), b"\0", DEEP))
        else:
            peer.reply(request, {"greenroom:stream": "s"})
            _, ask = await peer.hear(frames.ASK)
            opens = ask.varint()
            peer.reply(opens)
            stream = varint(opens - 1)
            if where == "item":
                peer.say(frame(frames.STREAM_ITEM, stream, varint(0), DEEP))
            else:
                peer.say(frame(frames.STREAM_END, stream, varint(0), b"\3", DEEP))
        with pytest.raises(gr.Unknown, match="Unreadable"):
            await first
        assert not next(iter(client.sessions.values())).lanes[0].dead


WELCOMES: list[dict[str, Any]] = [
    {"lease_ms": 1 << 63}, {"lease_ms": 0}, {"lease_ms": -5}, {"lease_ms": "x"}, {"window": 0}, {"frame_len_max": 0},
    {"shards": list(range(2000))}, {"shards": ["x"]}, {"cluster": b"\xff"}, {"secret": 5}, {"unknown": [{}]},
]  # fmt: skip


@pytest.mark.parametrize("welcome", WELCOMES)
async def test_a_welcome_that_cannot_be_is_no_session_and_another_node_is_dialled_on(peer: Peer, welcome: dict[str, Any]) -> None:
    peer.welcome = welcome
    await peer.listen()
    host = gr.Host([Slow], peer.url)
    starts = asyncio.create_task(host.start(60))
    while peer.sessions < 2:
        await asyncio.sleep(0.01)
    assert not starts.done()
    peer.welcome = {}
    await starts
    await host.close()
    await peer.stop()


async def test_whatever_ends_the_control_lane_it_is_dialled_again(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    async with hosting(peer, Slow) as host:
        (session,) = host.sessions.values()

        def fails(number: int, ms: int) -> None:
            raise ArithmeticError("of whatever kind")

        monkeypatch.setattr(session.lease, "granted", fails)
        peer.say_control(frame(frames.LEASE, varint(1), varint(5000)))
        await asyncio.wait_for(session.over, 60)
        assert "the control lane failed: ArithmeticError: of whatever kind" in session.why
        while peer.sessions < 2:
            await asyncio.sleep(0.01)


async def test_a_shard_that_is_named_twice_is_joined_once(peer: Peer) -> None:
    peer.shards = [0, 0]
    async with hosting(peer, Slow) as host:
        assert list(next(iter(host.sessions.values())).lanes) == [0]


async def test_a_session_that_is_over_writes_to_nobody_elses_files(peer: Peer) -> None:
    async with hosting(peer, Slow) as host:
        (session,) = host.sessions.values()
        control: Any = session._control  # pyright: ignore[reportPrivateUsage]
        session.lose("it is over")
        await asyncio.to_thread(control.join)
        pipes = [os.pipe() for _ in range(64)]
        try:
            # Their numbers are those that the lane had, and more.
            control.close()
            control.say(b"x")
            for read, _ in pipes:
                os.set_blocking(read, False)
                with pytest.raises(BlockingIOError):
                    os.read(read, 1)
        finally:
            for pipe in pipes:
                os.close(pipe[0])
                os.close(pipe[1])


@pytest.mark.parametrize("seed", range(40))
async def test_noise_on_a_lane_ends_that_lane_at_most(peer: Peer, seed: int) -> None:
    chance = random.Random(seed)
    async with hosting(peer, Open) as host:
        await peer.seat()
        for _ in range(20):
            kind = chance.choice([32, 34, 36, 38, 41, 48, 49, 50, 56, 99])
            head = b"".join(varint(chance.choice([0, 1, 2, 3, 127, 1 << 40, (1 << 64) - 1])) for _ in range(chance.randrange(7)))
            peer.say(frame(kind, head, chance.choice([b"", chance.randbytes(9), frames.NIL, *VALUES.values()])))
        for _ in range(200):
            peer.joined.clear()
            try:
                await asyncio.wait_for(peer.joined.wait(), 0.01)
            except TimeoutError:
                break
        session = next(iter(host.sessions.values()))
        while session.lanes[0].dead:
            await asyncio.sleep(0.01)
        while not peer.said.empty():
            peer.said.get_nowait()
        assert not session.lost


async def test_names_that_cannot_be_are_refused_and_the_lane_goes_on(peer: Peer) -> None:
    async with hosting(peer) as client:
        for kind in ("", "\ud800", "k" * 129):
            with pytest.raises(ValueError, match=r"kind '.*' is no name: give 1 to 128 bytes of UTF-8"):
                await client.ref(kind, "k").run()
        for name in ("\ud800", "m" * 129):
            with pytest.raises(ValueError, match="open: method '.*' is no name"):
                await getattr(client.ref("open", "k"), name)()
        for key in ("", "\ud800", "k" * 401, "/" * 134, ".", "..", 5, None):
            with pytest.raises(gr.Refused, match="a key is a text of 1 to 400 bytes of UTF-8, .*, which .* is not"):
                client.ref(Open, cast("str", key))
        with pytest.raises(gr.Refused, match="carry another text"):
            client.ref(Open, "k", context={"tenant": "\udcff"})
        call = asyncio.ensure_future(client.ref(Open, "o").run())
        kind, body = await peer.hear(frames.DEFINE)
        assert (body.varint(), body.text(), body.text()) == (0, "open", "run")
        request, *_ = await peer.called()
        peer.reply(request, 5)
        assert await call == 5


async def test_times_that_bound_no_call_bound_none_and_end_no_lane(peer: Peer) -> None:
    async with hosting(peer) as client:
        with pytest.raises(ValueError, match="by=nan bounds no call"):
            client.ref(Open, "o", by=float("nan"))
        for by, least, most in [(float("inf"), 9e14, 1e15), (1e300, 9e14, 1e15), (-1, 1, 1), (0, 1, 1)]:
            call = asyncio.ensure_future(client.ref(Open, "o", by=by).run())
            _, body = await peer.hear(frames.CALL)
            request, _, _, _, left = body.varint(), body.varint(), body.varint(), body.text(), body.varint()
            assert least <= left <= most
            peer.reply(request, 5)
            assert await call == 5


async def test_a_door_that_lets_no_lane_in_is_said_so(peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    async with hosting(peer, Slow) as host:
        (session,) = host.sessions.values()
        lane: Any = session.lanes[0]

        def answer(_: bytes) -> bytes | None:
            raise gr.NotLetIn("401")

        lane._answer = answer
        peer.say(frame(frames.CREDIT, varint(1)) + text("x"))
        await asyncio.wait_for(lane.closed, 60)
    assert "lane 0: 401" in caplog.text and "Fatal error" not in caplog.text
