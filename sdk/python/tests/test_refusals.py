"""What is refused by its name, and what is said in the log, against a scripted node."""

from __future__ import annotations

import asyncio
import gc
import logging
import warnings
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from peer import Peer, hosting

import greenroom as gr
from greenroom import frames
from greenroom.actor import kind_of
from greenroom.frames import frame, varint


class Keeper(gr.Actor, persistent=True, save="turn"):
    kept: list[Any] = []

    async def give(self) -> Any:  # 1
        return cyclic()

    async def keep(self) -> None:  # 3
        self.kept = cyclic()

    async def fail(self) -> None:  # 0
        raise Odd(kept=cyclic())

    async def size(self) -> int:  # 4
        return len(self.kept)

    async def items(self) -> AsyncIterator[Any]:  # 2
        yield cyclic()


class Journaled(gr.Actor, reliable=True):
    kept: list[Any] = []

    async def keep(self) -> None:  # 0
        self.kept = cyclic()

    async def size(self) -> int:  # 1
        return len(self.kept)


class Odd(gr.ActorError):
    kept: Any


def cyclic() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


async def test_what_holds_itself_is_refused_and_ends_nothing_but_its_turn(peer: Peer) -> None:
    async with hosting(peer, Keeper):
        await peer.seat()
        for method, reason in [(1, "Unreadable"), (3, "Unsaved"), (0, "Unreadable")]:
            status, value, state = await peer.call(method)
            assert (status, state) == (frames.UNKNOWN, b"")
            assert "it holds itself" in value["Unknown"][reason]["message"]
        _, stream, _ = await peer.call(2)
        peer.say(frame(frames.STREAM_CREDIT, varint(stream), varint(8), varint(0)))
        _, body = await peer.hear(frames.STREAM_END)
        assert (body.varint(), body.varint()) == (stream, 0)
        assert (await peer.call(4))[:2] == (0, 0)


async def test_what_holds_itself_is_not_committed(peer: Peer) -> None:
    async with hosting(peer, Journaled):
        await peer.seat()
        status, value, _ = await peer.call(0)
        assert status == frames.UNKNOWN and "it holds itself" in value["Unknown"]["Unsaved"]["message"]
        assert (await peer.call(1))[:2] == (0, 0)


def test_an_attribute_or_method_called_cx_is_refused_by_name() -> None:
    class Attribute(gr.Actor):
        cx: int = 1  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]

        async def run(self) -> None: ...

    class Method(gr.Actor):
        async def cx(self) -> None: ...  # pyright: ignore[reportIncompatibleMethodOverride]

    class Annotated(gr.Actor):
        cx: int  # pyright: ignore[reportIncompatibleMethodOverride]

        async def run(self) -> None: ...

    for cls in (Attribute, Method, Annotated):
        with pytest.raises(gr.ClassError, match=rf"{cls.__name__}\.cx hides the runtime's own `cx`"):
            gr.Host([cls], "unix:/x")


def test_a_hook_that_nobody_could_call_is_refused_by_name() -> None:
    class Iterated(gr.Actor):
        async def activated(self) -> AsyncIterator[int]:  # pyright: ignore[reportIncompatibleMethodOverride]
            yield 1

        async def run(self) -> None: ...

    class Plain(gr.Actor):
        deactivating: int = 5  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]

        async def run(self) -> None: ...

    class Migrates(gr.Actor):
        def migrate(self, version: int, state: Any) -> Any: ...  # pyright: ignore[reportIncompatibleMethodOverride]

        async def run(self) -> None: ...

    for cls, words in [
        (Iterated, r"Iterated\.activated is a hook, .*take the `yield` out"),
        (Plain, r"Plain\.deactivating is a hook .*`async def deactivating\(self, ..\)`"),
        (Migrates, r"Migrates\.migrate .*@classmethod"),
    ]:
        with pytest.raises(gr.ClassError, match=words):
            gr.Host([cls], "unix:/x")


async def test_hooks_need_not_be_coroutines(peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []

    class Hooked(gr.Actor):
        def activated(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            seen.append("activated")

        def deactivating(self, why: str) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            seen.append(why)

        async def run(self) -> int:
            return 1

    async with hosting(peer, Hooked):
        await peer.seat()
        assert (await peer.call(0))[:2] == (0, 1)
        peer.say(frame(frames.DEACTIVATE, varint(1), b"\0\0"))
        _, body = await peer.hear(frames.RELEASED)
        assert (body.varint(), body.u8()) == (1, 0)
    assert seen == ["activated", "idle"]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_what_is_no_actors_class_is_refused_with_the_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    class NotAnActor:
        async def run(self) -> None: ...

    for given, words in [
        (NotAnActor, "NotAnActor.*is no actor's class: give classes that subclass gr.Actor"),
        ([Keeper], "is no actor's class"),
        (Keeper(), "give its class, Keeper"),
        (gr.Actor, "subclass it"),
    ]:
        with pytest.raises(gr.ClassError, match=words):
            kind_of(cast("Any", given))
    with pytest.raises(SystemExit, match="NotAnActor.*gr.Actor"):
        gr.serve(cast("Any", NotAnActor), node="unix:/x")


class Cut(gr.Actor):
    async def wait(self) -> None:  # 2
        try:
            HEARD.append("began")
            await asyncio.sleep(3600)
        except BaseException as error:
            HEARD.append(type(error).__name__)
            raise

    async def run(self) -> int:  # 1
        return 1

    async def cancel(self) -> str:  # 0
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            task.uncancel()
            return "heard"
        return "slept"


HEARD: list[str] = []


async def test_a_turn_that_is_cut_before_its_task_first_runs_hears_of_it(peer: Peer) -> None:
    HEARD.clear()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        async with hosting(peer, Cut):
            await peer.seat()
            # In one write, so that the second frame is there before the loop goes on.
            turn = frame(frames.TURN, varint(77), varint(1), varint(2), b"\1", varint(0), b"\0", frames.packed({}))
            peer.say(turn + frame(frames.DEACTIVATE, varint(1), b"\1", b"\2"))
            _, body = await peer.hear(frames.RELEASED, frames.TURN_END)
            assert (body.varint(), body.u8()) == (1, 0), "the turn that was cut has no end"
            await asyncio.sleep(0)
            assert HEARD == ["began", "CancelledError"]
            await peer.seat(2)
            assert (await peer.call(1, seat=2))[:2] == (0, 1)
            assert (await peer.call(0, seat=2))[:2] == (0, "heard")
        gc.collect()
    assert not [str(one.message) for one in warned if "never awaited" in str(one.message)]


class Late(gr.Actor):
    async def run(self) -> None:  # 0
        async def outlives() -> None:
            await go.wait()
            try:
                await self.cx.ref(Cut, "c").run()
            except gr.Failure as error:
                late.put_nowait(error)

        TASKS.append(asyncio.create_task(outlives()))


TASKS: list[asyncio.Task[None]] = []


async def test_a_task_that_outlives_its_turn_and_calls_on_gets_fenced(peer: Peer) -> None:
    global go, late
    go, late = asyncio.Event(), asyncio.Queue()
    async with hosting(peer, Late):
        await peer.seat()
        await peer.call(0)
        go.set()
        request, *_ = await peer.called()
        peer.reply(request, {"Unknown": "Fenced"}, frames.UNKNOWN)
        assert isinstance(await asyncio.wait_for(late.get(), 60), gr.Fenced)


go: asyncio.Event
late: asyncio.Queue[gr.Failure]


class Sensor(gr.Actor):
    async def set(self, how: str) -> Any:  # 1
        wrong = cast("Any", 5)
        try:
            match how:
                case "after":
                    self.cx.after(1, self.flush, wrong)
                case "every":
                    self.cx.every(1, self.flush, why=wrong)
                case _:
                    await self.cx.remind(self.flush, wrong, after=1)
        except gr.Refused as refused:
            return [refused.reason, refused.detail]

    async def flush(self, why: str) -> None: ...  # 0


async def test_a_timer_or_reminder_whose_arguments_do_not_fit_is_refused_where_it_is_set(peer: Peer) -> None:
    async with hosting(peer, Sensor):
        await peer.seat()
        for how in ("after", "every", "remind"):
            status, (reason, detail), _ = await peer.call(1, {"how": how})
            assert (status, reason, detail["field"]) == (0, "Invalid", "why")
            assert detail["message"].startswith("sensor.flush does not take these arguments: Expected `str`, got `int`")
        assert peer.said.empty()


class Metronome(gr.Actor):
    async def fill(self) -> list[Any]:  # 0
        timers: list[gr.Timer] = []
        for _ in range(300):
            try:
                timers.append(self.cx.every(60, self.tick))
            except gr.Refused as refused:
                timers[0].cancel()
                self.cx.after(60, self.tick)
                return [len(timers), refused.reason, refused.detail["bound"]]
        return [len(timers)]

    async def remind(self, after: float) -> str:  # 1
        try:
            await self.cx.remind(self.tick, after=after)
        except ValueError as error:
            return str(error)
        return "set"

    async def tick(self) -> None: ...  # 2


async def test_a_timer_beyond_the_most_of_an_activation_is_refused_where_it_is_set(peer: Peer) -> None:
    async with hosting(peer, Metronome):
        # Each activation has timers of its own.
        for seat in (1, 2):
            await peer.seat(seat)
            turn = peer.turn(0, seat=seat)
            # 256 timers, the end of one, and another one.
            for _ in range(258):
                await peer.hear(frames.ASK)
            assert (await peer.end(turn))[1] == [256, "Overloaded", 256]


async def test_a_reminder_before_now_is_refused_where_it_is_set(peer: Peer) -> None:
    async with hosting(peer, Metronome):
        await peer.seat()
        for after in (-5, float("nan")):
            assert "is no such time" in (await peer.call(1, {"after": after}))[1]


async def test_a_tick_whose_arguments_do_not_fit_is_logged_by_its_method(peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    def said() -> int:
        return caplog.text.count("sensor/lobby.flush has not run, as its arguments do not fit: Expected `str`, got `int`")

    async with hosting(peer, Sensor):
        await peer.seat()
        for flags in (b"\4", b"\5"):
            head = (varint(90 + flags[0]), varint(1), varint(0), flags, varint(0), b"\0")
            peer.say(frame(frames.TURN, *head, frames.packed({"why": 5})))
            assert (await peer.end())[0] == frames.INVALID
        assert said() == 2
        assert (await peer.call(0, {"why": 5}))[0] == frames.INVALID
        assert said() == 2, "who waits is told, and the log is not"


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\0\0"])
async def test_nonsense_in_place_of_a_welcome_is_said_to_be_of_somebody_else(tmp_path: Path, answer: bytes) -> None:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)

    path = tmp_path / "odd.sock"
    server = await asyncio.start_unix_server(accept, path)
    with pytest.raises(gr.NotLetIn, match=r"odd\.sock does not speak the host protocol: is it the host socket of a Greenroom node\?"):
        await gr.Host([], f"unix:{path}").start()
    server.close()
