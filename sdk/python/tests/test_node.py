"""Kinds, streams, errors, states and topics of a host, against the real program."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from real_node import Empty, Hall, Member, Purse, post, watched
from real_node import pytestmark as pytestmark
from test_guide import program

import greenroom as gr
from greenroom.testing import Program


class Listener(gr.Actor):
    heard: list[float] = []
    ticked: list[str] = []

    async def activated(self) -> None:
        await self.cx.topic("prices/eu", float).subscribe(self.on_price)
        self.cx.after(0.02, self.tick, "hook")

    async def on_price(self, price: float) -> None:
        self.heard.append(price)

    async def tick(self, text: str) -> None:
        self.ticked.append(text)

    async def leave(self) -> None:
        await self.cx.topic("prices/eu", float).unsubscribe()

    async def dun(self, after: float, every: float | None = None) -> None:
        await self.cx.remind(self.tick, "reminded", after=after, every=every, name="dunning")

    async def forget(self) -> list[Any]:
        await self.cx.forget("dunning")
        return await self.cx.reminders()

    @gr.read
    async def all(self) -> tuple[list[float], list[str]]:
        return self.heard, self.ticked

    async def reminders(self) -> list[Any]:
        return await self.cx.reminders()

    async def rest(self) -> None:
        self.cx.deactivate()


class Draft(gr.Actor, persistent=True):
    text: str = ""

    async def write(self, text: str, save: bool) -> str:
        before, self.text = self.text, text
        if save:
            await self.cx.save()
        return before


async def test_a_kind_is_there_for_all_as_soon_as_it_is_served(greenroom_node: Program) -> None:
    assert (await asyncio.to_thread(post, greenroom_node, "hall/great/enter", {"name": "ada"}))[0] != 200
    async with greenroom_node.host(Hall, Member) as host, greenroom_node.client() as client:
        assert await host.ref(Hall, "great", by=5).enter("ada", times=2) == 2
        assert await client.ref(Hall, "great", by=5).enter("bob") == 3
        assert await client.ref("hall", "great", by=5).enter(name="cy") == 4
        status, value = await asyncio.to_thread(post, greenroom_node, "hall/great/enter", {"name": "dan"})
        assert (status, value) == (200, 5)


async def test_a_stream_of_a_host_is_consumed_by_clients_and_at_the_door(greenroom_node: Program) -> None:
    async with greenroom_node.host(Hall, Member) as host, greenroom_node.client() as client:
        await host.ref(Hall, "h", by=5).enter("ada", times=200)
        assert [name async for name in client.ref(Hall, "h", by=5).names(1)] == ["ada"] * 199
        assert [name async for name in host.ref(Hall, "h", by=5).names(198)] == ["ada"] * 2
        events = await asyncio.to_thread(watched, greenroom_node, "hall/h/names", {"start": 197})
        assert events == [*(f'id: {number}\ndata: "ada"' for number in range(3)), "event: end\ndata: null"]


async def test_a_host_consumes_streams_of_others_in_its_turns(greenroom_node: Program) -> None:
    async with greenroom_node.host(Hall, Member) as host:
        await host.ref(Hall, "h", by=5).enter("ada", times=150)
        assert await host.ref(Member, "m", by=5).count("h") == 150


async def test_l24_a_streams_step_begins_between_exclusive_turns_only(greenroom_node: Program) -> None:
    async with greenroom_node.host(Hall, Member) as host:
        hall = host.ref(Hall, "h", by=5)
        halves = hall.halves()
        assert await anext(halves) == 0
        turns = [asyncio.ensure_future(hall.half_and_half()) for _ in range(30)]
        seen = [number async for number in halves]
        await asyncio.gather(*turns)
        assert len(seen) == 99 and all(number % 2 == 0 for number in seen), seen


async def test_many_calls_at_once_are_answered_each(greenroom_node: Program) -> None:
    async with greenroom_node.host(Member), greenroom_node.client() as client:
        found = await asyncio.gather(*(client.ref(Member, f"m{n % 50}", by=10).see() for n in range(2000)))
        assert sorted(found) == sorted(list(range(1, 41)) * 50)


async def test_errors_have_their_classes_and_the_door_its_problems(greenroom_node: Program) -> None:
    async with greenroom_node.host(Purse, Hall, Member), greenroom_node.client() as client:
        with pytest.raises(Empty) as empty:
            await client.ref(Purse, "ada", by=5).pay(3)
        assert empty.value.balance == 0
        with pytest.raises(gr.Unknown, match="ValueError: no") as panicked:
            await client.ref(Member, "ada", by=5).panic()
        assert panicked.value.reason == "Panicked"
        with pytest.raises(gr.Unknown, match="Cycle: the call chain would deadlock: hall/h -> member/m -> hall/h"):
            await client.ref(Hall, "h", by=5).circle("m")
        with pytest.raises(gr.Refused) as refused:
            await client.ref("hall", "h", by=5).enter(name=7)
        assert refused.value.reason == "Invalid" and refused.value.retry_after is None
        with pytest.raises(gr.Refused) as unknown:
            await client.ref("no_such_kind", "h", by=5).enter()
        assert unknown.value.reason == "UnknownKind"
        status, problem = await asyncio.to_thread(post, greenroom_node, "purse/ada/pay", {"amount": 3})
        assert status == 409 or status >= 400
        assert problem["error"] == {"Empty": {"balance": 0}}
        status, problem = await asyncio.to_thread(post, greenroom_node, "purse/ada/pay", {"amount": "x"})
        assert status in (400, 422) and problem["field"] == "amount"


async def test_state_is_saved_before_the_caller_is_answered(greenroom_node: Program) -> None:
    async with greenroom_node.host(Purse) as host:
        assert await host.ref(Purse, "ada", by=5).deposit(5) == 5
        with pytest.raises(gr.Unknown):
            await host.ref(Purse, "ada", by=5).break_off()
        assert await host.ref(Purse, "ada", by=5).deposit(1) == 6
    async with greenroom_node.host(Purse) as host:
        assert await host.ref(Purse, "ada", by=10).get() == 6


async def test_what_an_actor_saves_is_what_is_there_again(greenroom_node: Program) -> None:
    async with greenroom_node.host(Draft) as host:
        draft = host.ref(Draft, "d", by=5)
        assert [await draft.write("a", True), await draft.write("b", False)] == ["", "a"]
    async with greenroom_node.host(Draft) as host:
        assert await host.ref(Draft, "d", by=10).write("c", False) == "a"


async def test_a_timer_ticks(greenroom_node: Program) -> None:
    async with greenroom_node.host(Hall, Member) as host:
        await host.ref(Hall, "h", by=5).later()
        while not (last := await host.ref(Hall, "h", by=5).last()):
            await asyncio.sleep(0.01)
        assert last == "later"


async def test_a_topic_reaches_who_watches_it(greenroom_node: Program) -> None:
    async with greenroom_node.client() as client:
        prices = client.topic("prices/eu", float)
        first = asyncio.ensure_future(anext(aiter(prices.watch())))
        while not first.done():
            await prices.publish(1.5)
            await asyncio.sleep(0.01)
        assert await first == 1.5


async def test_an_actor_subscribes_when_it_is_activated_and_what_its_hook_asks_is_done(greenroom_node: Program) -> None:
    async with greenroom_node.host(Listener) as host:
        listener, prices = host.ref(Listener, "l", by=5), host.topic("prices/eu", float)
        published = 0.0
        while not (await listener.all())[0]:
            published += 1
            await prices.publish(published)
        first = (await listener.all())[0][0]
        while len((await listener.all())[0]) < published - first + 1:
            await asyncio.sleep(0.01)
        assert (await listener.all())[0] == [first + number for number in range(int(published - first) + 1)]
        await listener.leave()
        await prices.publish(0)
        while (await listener.all())[1] != ["hook"]:
            await asyncio.sleep(0.01)
        assert 0 not in (await listener.all())[0]


async def test_a_reminder_comes_although_the_actor_sleeps(greenroom_node: Program) -> None:
    async with greenroom_node.host(Listener) as host:
        listener = host.ref(Listener, "r", by=5)
        await listener.dun(1)
        await listener.rest()
        while "reminded" not in (await listener.all())[1]:
            await asyncio.sleep(0.02)
        await listener.dun(3600, 60)
        (reminder,) = await listener.reminders()
        assert (reminder["name"], reminder["method"], reminder["every_ms"]) == ("dunning", "tick", 60_000)
        assert abs(reminder["due_ms"] / 1000 - time.time() - 3600) < 60
        assert await listener.forget() == []
        for after, every in ((1, 0.5), (0.5, None)):
            with pytest.raises(gr.Unknown, match="less than a second"):
                await listener.dun(after, every)


async def test_hosts_come_through_the_door_too(greenroom_node: Program) -> None:
    async with gr.Host([Hall, Member], greenroom_node.http) as host:
        assert await host.ref(Hall, "h", by=5).enter("ada") == 1


async def test_a_linked_kind_and_topics_are_not_for_hosts(greenroom_node: Program) -> None:
    """L13."""
    cls: Any = type("Topics", (gr.Actor,), {"run": Member.see}, kind="topics")
    async with greenroom_node.host(cls, Member) as host:
        session = next(iter(host.sessions.values()))
        status, reason = session.offered["topics"]
        assert status == 2 and reason
        assert session.offered["member"][0] == 0


def test_the_guides_programs_run(greenroom_node: Program, tmp_path: Path) -> None:
    for name in ("chat.py", "client.py", "blocking.py"):
        (tmp_path / name).write_text(program(name))
    environment = os.environ | {"GREENROOM_HOST": greenroom_node.url}
    chat = subprocess.Popen([sys.executable, "chat.py"], cwd=tmp_path, env=environment)
    try:
        until = time.monotonic() + 20
        while post(greenroom_node, "user/ada/may_post", {})[0] != 200:
            assert time.monotonic() < until
            time.sleep(0.02)
        done = subprocess.run([sys.executable, "client.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert (done.stdout.splitlines(), done.stderr) == (["1", "['ada: hello']", "bob may not post"], "")
        done = subprocess.run([sys.executable, "blocking.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert (done.stdout.splitlines(), done.stderr) == (["2", "['ada: hello', 'ada: hello']"], "")
        chat.terminate()
        assert chat.wait(30) == 0
    finally:
        chat.kill()
