"""Turns, against a scripted node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from peer import Peer, hosting

import greenroom as gr
from greenroom import frames
from greenroom.frames import frame, varint


class NotMember(gr.ActorError):
    user: str


class User(gr.Actor):
    async def may_post(self) -> bool:
        return True


class Room(gr.Actor):
    """A room."""

    messages: list[str] = []

    async def ask(self, user: str) -> bool:  # 0
        return await self.cx.ref(User, user, by=2).may_post()

    async def fail(self, user: str) -> None:  # 1
        raise NotMember(user=user)

    @gr.read
    async def history(self, start: int = 0) -> AsyncIterator[str]:  # 2
        for message in self.messages[start:]:
            yield message

    async def limited(self) -> str:  # 3
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(10)
        except TimeoutError:
            return "timed out"
        return "slept"

    async def panic(self) -> None:  # 4
        raise ValueError("no")

    async def post(self, user: str, text: str = "hello") -> int:  # 5
        self.messages.append(f"{user}: {text}")
        return len(self.messages)

    async def told(self, user: str) -> None:  # 6
        await self.cx.send(User, user).may_post()

    async def two(self) -> list[bool]:  # 7
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.cx.ref(User, name).may_post()) for name in ("ada", "bob")]
        return [task.result() for task in tasks]

    async def wait(self) -> bool:  # 8
        await asyncio.sleep(0.05)
        return self.cx.is_cancelled


ASK, FAIL, HISTORY, LIMITED, PANIC, POST, TOLD, TWO, WAIT = range(9)


async def test_a_turn_runs_at_its_seat_and_each_activation_has_its_own_memory(peer: Peer) -> None:
    async with hosting(peer, Room):
        await peer.seat(1, "lobby")
        await peer.seat(2, "attic")
        assert await peer.call(POST, {"user": "ada"}) == (0, 1, b"")
        assert await peer.call(POST, {"user": "bob", "text": "hi", "unknown": 1}) == (0, 2, b"")
        assert await peer.call(POST, {"user": "ada"}, seat=2) == (0, 1, b"")


async def test_an_error_of_its_own_travels_by_its_name(peer: Peer) -> None:
    async with hosting(peer, Room):
        await peer.seat()
        assert await peer.call(FAIL, {"user": "ada"}) == (1, {"NotMember": {"user": "ada"}}, b"")


async def test_arguments_that_do_not_fit_are_refused_with_their_path(peer: Peer) -> None:
    async with hosting(peer, Room):
        await peer.seat()
        status, value, _ = await peer.call(POST, {"user": 1})
        assert (status, value["Refused"]["Invalid"]["field"]) == (6, "user")
        status, value, _ = await peer.call(POST, {})
        assert (status, value["Refused"]["Invalid"]["field"]) == (6, "user")


async def test_an_exception_is_a_panic_with_its_type_and_the_instance_stays(peer: Peer) -> None:
    async with hosting(peer, Room):
        await peer.seat()
        await peer.call(POST, {"user": "ada"})
        assert await peer.call(PANIC) == (5, {"Unknown": {"Panicked": {"message": "ValueError: no"}}}, b"")
        assert await peer.call(POST, {"user": "ada"}) == (0, 2, b"")


async def test_a_json_turn_is_answered_in_json(peer: Peer) -> None:
    """L17."""
    async with hosting(peer, Room):
        await peer.seat()
        peer.turn(POST, payload=b'\x02\x01{"user":"ada"}')
        _, body = await peer.hear(frames.TURN_END)
        assert body.rest() == b"\x01\0\0\x02\x011"
        peer.turn(FAIL, payload=b'\x02\x02{"user":"ada"}')
        _, body = await peer.hear(frames.TURN_END)
        assert body.rest()[3:] == b'\x02\x02{"error":{"NotMember":{"user":"ada"}},"says":"NotMember(user=\'ada\')"}'


async def test_a_call_names_the_turn_that_makes_it(peer: Peer) -> None:
    async with hosting(peer, Room):
        await peer.seat()
        turn = peer.turn(ASK, {"user": "ada"})
        request, by, key, arguments = await peer.called()
        assert (by, key, arguments) == (turn, "ada", {})
        peer.reply(request, True)
        assert await peer.end(turn) == (0, True, b"")
        turn = peer.turn(ASK, {"user": "ada"})
        request, *_ = await peer.called()
        peer.reply(request, {"Refused": "Stopping"}, frames.REFUSED)
        status, value, _ = await peer.end(turn)
        assert (status, value) == (5, {"Unknown": {"Panicked": {"message": "Refused: Stopping"}}})


async def test_what_asyncio_asks_of_the_current_task_works_from_the_first_step_on(peer: Peer) -> None:
    async with hosting(peer, Room):
        await peer.seat()
        assert await peer.call(LIMITED) == (0, "timed out", b"")
        turn = peer.turn(TWO)
        for _ in range(2):
            request, by, *_ = await peer.called()
            assert by == turn
            peer.reply(request, True)
        assert await peer.end(turn) == (0, [True, True], b"")


async def test_a_one_way_message_waits_for_nobody(peer: Peer) -> None:
    async with hosting(peer, Room):
        await peer.seat()
        turn = peer.turn(TOLD, {"user": "ada"})
        request, *_ = await peer.called()
        assert request == 0
        assert (await peer.end(turn))[0] == 0


async def test_a_cancelled_turn_is_told_and_goes_on(peer: Peer) -> None:
    async with hosting(peer, Room):
        await peer.seat()
        turn = peer.turn(WAIT)
        peer.say(frame(frames.CANCEL_TURN, varint(turn)))
        assert await peer.end(turn) == (0, True, b"")


async def test_a_stream_makes_items_as_its_consumer_has_room(peer: Peer) -> None:
    async with hosting(peer, Room):
        await peer.seat()
        for user in ("ada", "bob", "cy"):
            await peer.call(POST, {"user": user})
        status, stream, _ = await peer.call(HISTORY, {"start": 1})
        assert status == 0
        peer.say(frame(frames.STREAM_CREDIT, varint(stream), varint(1), varint(0)))
        _, body = await peer.hear(frames.STREAM_ITEM)
        assert (body.varint(), body.varint(), body.rest()) == (stream, 0, frames.packed("bob: hello"))
        await peer.call(POST, {"user": "dan"})
        assert peer.said.empty()
        peer.say(frame(frames.STREAM_CREDIT, varint(stream), varint(8), varint(1)))
        _, body = await peer.hear(frames.STREAM_ITEM)
        assert (body.varint(), body.varint(), body.rest()) == (stream, 1, frames.packed("cy: hello"))
        _, body = await peer.hear(frames.STREAM_END)
        assert (body.varint(), body.varint(), body.u8()) == (stream, 2, 0)


async def test_a_stream_is_consumed_in_order_with_credit(peer: Peer) -> None:
    async with hosting(peer) as host:
        items: Any = host.ref(Room, "lobby").history(3)
        first = asyncio.ensure_future(anext(items))
        request, _, _, arguments = await peer.called()
        assert arguments == {"start": 3}
        peer.reply(request, {"greenroom:stream": "7.0.1.2.0000000000000003"})
        _, ask = await peer.hear(frames.ASK)
        request, _, _, operation = ask.varint(), ask.varint(), ask.varint(), ask.u8()
        from msgspec import msgpack

        what = msgpack.decode(ask.rest()[2:])
        assert (operation, what["name"], what["window"]) == (frames.OPEN_STREAM, "7.0.1.2.0000000000000003", 64)
        peer.reply(request)
        stream = varint(what["stream"])
        for number in range(40):
            peer.say(frame(frames.STREAM_ITEM, stream, varint(number), frames.packed(str(number))))
        peer.say(frame(frames.STREAM_END, stream, varint(40), b"\0"))
        assert await first == "0"
        assert [item async for item in items] == [str(number) for number in range(1, 40)]


async def test_a_caller_gets_its_errors_by_their_classes(peer: Peer) -> None:
    async with hosting(peer) as host:
        for status, value, expected in [
            (1, {"NotMember": {"user": "ada"}}, NotMember),
            (1, {"Other": {"x": 1}}, gr.ActorError),
            (2, {"Refused": {"Overloaded": {"queue": "q", "bound": 3}}}, gr.Refused),
            (3, {"Unknown": {"Disconnected": {"node": "b"}}}, gr.Unknown),
            (4, {"Cycle": ["a/1", "b/2", "a/1"]}, gr.Cycle),
            (77, None, gr.Unknown),
        ]:
            call = asyncio.ensure_future(host.ref(User, "ada").may_post())
            request, *_ = await peer.called()
            peer.reply(request, value, status)
            with pytest.raises(expected) as raised:
                await call
            if expected is NotMember:
                assert isinstance(raised.value, NotMember) and raised.value.user == "ada"


async def test_calls_wait_for_credit_and_go_in_order(peer: Peer) -> None:
    peer.window = 60
    async with hosting(peer) as host:
        calls = [asyncio.ensure_future(host.ref(User, f"user-{number}").may_post()) for number in range(20)]
        await asyncio.sleep(0.05)
        assert peer.said.qsize() < 8
        keys: list[str] = []
        for _ in calls:
            request, _, key, _ = await peer.called()
            keys.append(key)
            peer.reply(request, True)
            peer.say(frame(frames.CREDIT, varint(40 * len(keys))))
        assert await asyncio.gather(*calls) == [True] * 20
        assert keys == [f"user-{number}" for number in range(20)]


async def test_a_caller_that_gives_up_says_so(peer: Peer) -> None:
    async with hosting(peer) as host:
        call = asyncio.ensure_future(host.ref(User, "ada").may_post())
        request, *_ = await peer.called()
        call.cancel()
        _, body = await peer.hear(frames.CANCEL_CALL)
        assert body.varint() == request
        peer.reply(request, True)
        again = asyncio.ensure_future(host.ref(User, "ada").may_post())
        request, *_ = await peer.called()
        peer.reply(request, False)
        assert await again is False
