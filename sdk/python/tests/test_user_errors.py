"""What users' own code raises ends its own turn, hook or stream, and nothing else, against a scripted node."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from peer import Peer, hosting

import greenroom as gr
from greenroom import frames
from greenroom.frames import frame, varint


class Mute(Exception):
    def __str__(self) -> str:
        raise KeyError("no words")

    __repr__ = __str__


class Odd:
    def __repr__(self) -> str:
        raise ValueError("no form")


class Bad(gr.ActorError):
    of: Any = None


class Lacks(gr.ActorError):
    @property
    def value(self) -> Any:
        raise AttributeError("no value")


class Half(msgspec.Struct):
    one: int

    @staticmethod
    def unset() -> Half:
        found = Half(1)
        del found.one
        return found


class Picky(msgspec.Struct):
    one: int

    def __post_init__(self) -> None:
        if self.one == 13:
            raise LookupError("not that one")


RAISED: dict[str, Any] = {
    "mute": Mute,
    "surrogate": lambda: FileNotFoundError("no file \udcff"),
    "huge": lambda: RuntimeError("x" * (9 << 20)),
    "actor's": lambda: Bad(of=Odd()),
    "actor's surrogate": lambda: Bad(of="\ud800"),
    "actor's value": Lacks,
    "own detail": lambda: gr.Unknown("Unsaved", {"message": "\ud800"}),
    "cancelled": asyncio.CancelledError,
    "exit": lambda: GeneratorExit("out"),
}


class Failing(gr.Actor, persistent=True, save="turn"):
    kept: Any = 0

    async def now(self, what: str) -> None:  # 4
        raise RAISED[what]()

    async def later(self, what: str) -> None:  # 3
        await asyncio.sleep(0)
        raise RAISED[what]()

    async def items(self, what: str) -> AsyncIterator[Any]:  # 2
        yield 1
        raise RAISED[what]()

    async def run(self) -> int:  # 5
        return 1

    async def give(self, how: str) -> Any:  # 0
        if how == "later":
            await asyncio.sleep(0)
        return Half.unset()

    async def hold(self, how: str) -> None:  # 1
        if how == "later":
            await asyncio.sleep(0)
        self.kept = Half.unset()

    async def take(self, picky: Picky) -> int:  # 6
        return picky.one

    async def activated(self) -> None:
        if self.cx.key in RAISED:
            raise RAISED[self.cx.key]()

    async def deactivating(self, why: str) -> None:
        if self.cx.key.startswith("leaves "):
            raise RAISED[self.cx.key.removeprefix("leaves ")]()


GIVE, HOLD, ITEMS, LATER, NOW, RUN, TAKE = range(7)

SAID = {
    "mute": "Mute: its __str__ raises KeyError",
    "surrogate": "FileNotFoundError: no file \\udcff",
    "huge": "RuntimeError: xxx",
    "actor's": "Bad cannot be written: TypeError: ",
    "actor's surrogate": "Bad cannot be written: UnicodeEncodeError",
    "actor's value": "Lacks cannot be written: AttributeError: no value",
    "own detail": "Unknown: Unsaved: \\ud800",
    "cancelled": "CancelledError",
    "exit": "GeneratorExit: out",
}


@pytest.mark.parametrize("what", list(RAISED))
@pytest.mark.parametrize("method", [NOW, LATER, ITEMS])
async def test_whatever_a_turn_raises_fails_that_turn_alone_and_is_named(peer: Peer, what: str, method: int) -> None:
    async with hosting(peer, Failing) as host:
        lane = next(iter(host.sessions.values())).lanes[0]
        await peer.seat()
        other = frame(frames.TURN, varint(90), varint(1), varint(NOW), b"\1", varint(0), b"\0", b"\x02\x02", msgspec.json.encode({"what": what}))
        if method == ITEMS:
            _, stream, _ = await peer.call(ITEMS, {"what": what})
            peer.say(frame(frames.STREAM_CREDIT, varint(stream), varint(8), varint(0)))
            await peer.hear(frames.STREAM_ITEM)
            _, body = await peer.hear(frames.STREAM_END)
            assert (body.varint(), body.varint()) == (stream, 1)
            status, value = body.u8(), msgspec.msgpack.decode(body.rest()[2:])
        else:
            status, value, _ = await peer.call(method, {"what": what})
        if what == "cancelled" and method == ITEMS:
            assert "Ended" in str(value), "what a stream is ended by"
        else:
            assert SAID[what] in next(iter(value["Unknown"].values()))["message"]
            assert status in (frames.PANICKED, frames.UNKNOWN)
        # The same by the door, which asks for the sentence too.
        peer.say(other)
        assert (await peer.end(90))[0] in (frames.PANICKED, frames.UNKNOWN)
        assert (await peer.call(RUN))[:2] == (0, 1)
        assert host.sessions and not lane.dead


@pytest.mark.parametrize("what", list(RAISED))
async def test_whatever_a_hook_raises_is_told_to_who_waits_for_the_seat(peer: Peer, what: str) -> None:
    async with hosting(peer, Failing):
        await peer.seat()
        peer.activate(2, what)
        _, body = await peer.hear(frames.ACTIVATED)
        assert (body.varint(), body.u8()) == (2, frames.REFUSED)
        told = msgspec.msgpack.decode(body.rest()[2:])["Refused"]["Activation"]["message"]
        assert told.startswith(type(RAISED[what]()).__name__)
        await peer.seat(3, f"leaves {what}")
        peer.say(frame(frames.DEACTIVATE, varint(3), b"\0\0"))
        _, body = await peer.hear(frames.RELEASED)
        assert (body.varint(), body.u8()) == (3, frames.PANICKED)
        assert (await peer.call(RUN))[:2] == (0, 1)


@pytest.mark.parametrize("how", ["now", "later"])
@pytest.mark.parametrize(("method", "reason"), [(GIVE, "Unreadable"), (HOLD, "Unsaved")])
async def test_what_an_encoder_raises_of_a_users_type_fails_the_turn_alone(peer: Peer, method: int, reason: str, how: str) -> None:
    async with hosting(peer, Failing):
        await peer.seat()
        status, value, _ = await peer.call(method, {"how": how})
        assert status == frames.UNKNOWN and "AttributeError: Struct field 'one' is unset" in value["Unknown"][reason]["message"]
        assert (await peer.call(RUN))[:2] == (0, 1)


async def test_what_a_users_type_raises_of_arguments_refuses_them(peer: Peer) -> None:
    async with hosting(peer, Failing):
        await peer.seat()
        status, value, _ = await peer.call(TAKE, {"picky": {"one": 13}})
        assert (status, value["Refused"]["Invalid"]["message"]) == (frames.INVALID, "LookupError: not that one")
        assert (await peer.call(TAKE, {"picky": {"one": 1}}))[:2] == (0, 1)


class Lasting(gr.Actor, migrate=True):
    held: str = ""

    async def fill(self, size: int) -> None:  # 1
        self.held = "x" * size

    @gr.read
    async def stubborn(self) -> AsyncIterator[int]:  # 2
        number = 0
        while True:
            try:
                await reached()
            except asyncio.CancelledError:
                pass
            yield number
            number += 1

    @gr.read
    async def bursts(self) -> AsyncIterator[int]:  # 0
        try:
            yield 1
            yield 2
        finally:
            raise RuntimeError("burst")


async def reached() -> None:
    began.release()
    await asyncio.Event().wait()


began: asyncio.Semaphore
BURSTS, FILL, STUBBORN = range(3)


async def test_what_is_too_large_to_be_carried_is_said_and_costs_no_lane(peer: Peer) -> None:
    async with hosting(peer, Lasting) as host:
        await peer.seat()
        await peer.call(FILL, {"size": 9 << 20})
        peer.say(frame(frames.DEACTIVATE, varint(1), b"\4\1"))
        _, body = await peer.hear(frames.RELEASED)
        assert (body.varint(), body.u8()) == (1, frames.UNKNOWN)
        assert "what lasting/lobby carries has 9437" in str(msgspec.msgpack.decode(body.rest()[2:]))
        assert not next(iter(host.sessions.values())).lanes[0].dead


async def test_a_generator_that_keeps_its_cancellation_for_itself_ends_all_the_same(peer: Peer) -> None:
    global began
    began = asyncio.Semaphore(0)
    async with hosting(peer, Lasting) as host:
        await peer.seat()
        _, stream, _ = await peer.call(STUBBORN)
        peer.say(frame(frames.STREAM_CREDIT, varint(stream), varint(8), varint(0)))
        await began.acquire()
        peer.say(frame(frames.STREAM_CREDIT, varint(stream), varint(0), varint(0)))
        _, body = await peer.hear(frames.STREAM_END)
        assert (body.varint(), body.varint(), body.u8()) == (stream, 0, frames.UNKNOWN)
        assert not next(iter(host.sessions.values())).lanes[0].outlets


async def test_a_generator_that_raises_as_it_is_closed_is_logged_by_its_method(peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    async with hosting(peer, Lasting):
        await peer.seat()
        _, stream, _ = await peer.call(BURSTS)
        peer.say(frame(frames.STREAM_CREDIT, varint(stream), varint(1), varint(0)))
        await peer.hear(frames.STREAM_ITEM)
        peer.say(frame(frames.STREAM_CREDIT, varint(stream), varint(0), varint(1)))
        await peer.hear(frames.STREAM_END)
        while "lasting/lobby.bursts failed as it was closed" not in caplog.text:
            await asyncio.sleep(0.01)
    assert "RuntimeError: burst" in caplog.text
    assert not [record for record in caplog.records if record.name == "asyncio" and record.levelno >= logging.ERROR]


@pytest.mark.parametrize("to", ["", "x" * 129, "\ud800"])
async def test_a_state_that_cannot_be_named_fails_the_turn_that_jumps_there(peer: Peer, to: str) -> None:
    JUMPS["to"] = to
    async with hosting(peer, Jumping):
        await peer.seat()
        status, value, _ = await peer.call(0)
        assert status == frames.PANICKED
        assert "Jumping.go: the state" in value["Unknown"]["Panicked"]["message"]
        assert (await peer.call(1))[:2] == (0, 1)


JUMPS: dict[str, str] = {}


class Jumping(gr.Actor, reliable=True, start="Init"):
    async def go(self) -> None:  # 0
        self.cx.jump(JUMPS["to"])

    async def run(self) -> int:  # 1
        return 1
