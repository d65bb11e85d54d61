"""Against the real program: a node in its own process. They are skipped where there is none, unless `GREENROOM_LANGUAGES=all`."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from test_guide import program

import greenroom as gr
from greenroom.testing import Program

IS_THERE = "GREENROOM_BIN" in os.environ or shutil.which("greenroom") is not None
pytestmark = pytest.mark.skipif(
    not IS_THERE and os.environ.get("GREENROOM_LANGUAGES") != "all", reason="no program: set GREENROOM_BIN"
)




class Empty(gr.ActorError):
    balance: int


class Member(gr.Actor):
    seen: int = 0

    async def see(self) -> int:
        self.seen += 1
        return self.seen

    @gr.read
    async def slow_read(self, seconds: float) -> int:
        STARTED.append(self.cx.key)
        await asyncio.sleep(seconds)
        return self.seen

    async def slow(self, seconds: float) -> str:
        STARTED.append(self.cx.key)
        await asyncio.sleep(seconds)
        return "done"

    async def call_back(self, hall: str) -> int:
        return await self.cx.ref(Hall, hall, by=5).enter("x")

    async def count(self, hall: str) -> int:
        return len([name async for name in self.cx.ref(Hall, hall, by=5).names()])

    async def panic(self) -> None:
        raise ValueError("no")

    async def compute(self, seconds: float) -> int:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pass
        return self.seen


class Hall(gr.Actor, idle=60):
    """A hall."""

    entered: list[str] = []
    half: int = 0

    async def enter(self, name: str, times: int = 1) -> int:
        """Enters."""
        for _ in range(times):
            await self.cx.ref(Member, name, by=5).see()
            self.entered.append(name)
        return len(self.entered)

    async def circle(self, member: str) -> int:
        return await self.cx.ref(Member, member, by=5).call_back(self.cx.key)

    @gr.read
    async def names(self, start: int = 0) -> AsyncIterator[str]:
        for name in self.entered[start:]:
            yield name

    @gr.read
    async def halves(self) -> AsyncIterator[int]:
        for _ in range(100):
            # As its step begins: a turn may begin while it waits.
            half = self.half
            await asyncio.sleep(0)
            yield half

    async def half_and_half(self) -> None:
        self.half += 1
        await self.cx.ref(Member, "x", by=5).see()
        self.half += 1

    @gr.read
    async def last(self) -> str:
        return self.entered[-1] if self.entered else ""

    async def tick(self, text: str) -> None:
        self.entered.append(text)

    async def later(self) -> None:
        self.cx.after(0.02, self.tick, "later")


class Purse(gr.Actor, persistent=True, save="turn"):
    balance: int = 0

    async def deposit(self, amount: int) -> int:
        self.balance += amount
        return self.balance

    async def pay(self, amount: int) -> int:
        if amount > self.balance:
            raise Empty(balance=self.balance)
        self.balance -= amount
        return self.balance

    async def break_off(self) -> None:
        self.balance += 1000
        raise RuntimeError("in the middle")

    @gr.read
    async def get(self) -> int:
        return self.balance


class Pouch(gr.Actor, reliable=True):
    coins: int = 0
    taken: list[int] = []

    async def pay(self, to: str, coins: int) -> int:
        self.coins -= coins
        await self.cx.send(Pouch, to).take(coins)
        if coins == 13:
            raise RuntimeError("thirteen")
        return self.coins

    async def take(self, coins: int) -> None:
        self.coins += coins
        self.taken = [*self.taken, coins]

    async def later(self, to: str, coins: int) -> None:
        self.cx.after(0.02, self.pay, to, coins)

    async def ask(self, to: str) -> None:
        await self.cx.ref(Pouch, to).take(1)

    async def close(self) -> None:
        self.cx.halt()

    @gr.read
    async def look(self) -> tuple[int, list[int]]:
        return self.coins, self.taken


class Urn(gr.Actor, reliable=True):
    drawn: list[float] = []

    async def choose(self) -> int:
        self.drawn = [*self.drawn, await self.cx.choose(random.random)]
        return len(self.drawn)

    async def draw(self) -> None:
        self.drawn = [*self.drawn, random.random()]

    async def later(self) -> None:
        self.cx.after(0.01, self.choose)

    async def ask(self, other: str) -> None:
        self.drawn = [*self.drawn, *await self.cx.ref(Urn, other).look()]

    @gr.read
    async def look(self) -> list[float]:
        return self.drawn


class Counter(gr.Actor, reliable=True, start="Init"):
    words: list[str] = []

    @gr.on("Init")
    async def begin(self) -> None:
        self.cx.jump("Counting")

    @gr.on("Counting", defer="Init", ignore="Done")
    async def word(self, word: str) -> None:
        self.words = [*self.words, word]

    @gr.on("Counting")
    async def close(self, state: str) -> None:
        self.words = [*self.words, "close"]
        self.cx.jump(state or "Done")
        if not state:
            raise RuntimeError("in the middle")

    @gr.read
    async def look(self) -> tuple[list[str], list[str]]:
        return self.words, [self.cx.machine_state or ""]


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


STARTED: list[str] = []


def post(node: Program, path: str, arguments: Any) -> tuple[int, Any]:
    """A call by HTTP."""
    request = urllib.request.Request(f"{node.http}/{path}", json.dumps(arguments).encode())
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def watched(node: Program, path: str, arguments: Any) -> list[str]:
    """The events of a stream by HTTP."""
    request = urllib.request.Request(f"{node.http}/{path}", json.dumps(arguments).encode(), {"accept": "text/event-stream"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return [event for event in answer.read().decode().split("\n\n") if event]


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


async def test_a_reliable_turn_is_one_commit_with_what_it_sends(tmp_path: Path) -> None:
    node = Program("--journal", f"sqlite:{tmp_path / 'journal'}")
    try:
        async with node.host(Pouch) as host:
            ada, bob = host.ref(Pouch, "ada", by=20), host.ref(Pouch, "bob", by=20)
            assert await ada.pay("bob", 5) == -5
            with pytest.raises(gr.Failure, match="thirteen"):
                await ada.pay("bob", 13)
            assert await ada.pay("bob", 2) == -7
            await ada.later("bob", 1)
            while len((await bob.look())[1]) < 3:
                await asyncio.sleep(0.01)
            assert await bob.look() == (8, [5, 2, 1])
            with pytest.raises(gr.Failure, match="send it one-way"):
                await ada.ask("bob")
        # What is kept is there again at the next host, and goes with who halts.
        async with node.host(Pouch) as host:
            ada, bob = host.ref(Pouch, "ada", by=20), host.ref(Pouch, "bob", by=20)
            assert [await ada.look(), await bob.look()] == [(-8, []), (8, [5, 2, 1])]
            await bob.close()
            assert await bob.look() == (0, [])
    finally:
        node.stop()


async def test_a_state_machine_defers_ignores_and_jumps(tmp_path: Path) -> None:
    node = Program("--journal", f"sqlite:{tmp_path / 'journal'}")
    try:
        async with node.host(Counter) as host:
            words = host.ref(Counter, "c", by=20)
            early = asyncio.ensure_future(words.word("early"))
            await asyncio.sleep(0.1)
            assert (early.done(), await words.look()) == (False, ([], ["Init"]))
            await words.begin()
            # What had waited has run by now, and is answered.
            await early
            await words.word("late")
            with pytest.raises(gr.Refused, match="does not know \"begin\" in the state \"Counting\""):
                await words.begin()
            # A turn that fails has not jumped.
            with pytest.raises(gr.Failure, match="no state \"Nowhere\""):
                await words.close("Nowhere")
            with pytest.raises(gr.Failure, match="in the middle"):
                await words.close("")
            assert await words.look() == (["early", "late"], ["Counting"])
        # The state is there again at the next host.
        async with node.host(Counter) as host:
            words = host.ref(Counter, "c", by=20)
            assert await words.look() == (["early", "late"], ["Counting"])
            await words.close("Done")
            with pytest.raises(gr.Refused, match="ignores \"word\" in the state \"Done\""):
                await words.word("never")
            assert await words.look() == (["early", "late", "close"], ["Done"])
    finally:
        node.stop()


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
        await listener.dun(0.3)
        await listener.rest()
        while "reminded" not in (await listener.all())[1]:
            await asyncio.sleep(0.02)
        await listener.dun(3600, 60)
        (reminder,) = await listener.reminders()
        assert (reminder["name"], reminder["method"], reminder["every_ms"]) == ("dunning", "tick", 60_000)
        assert abs(reminder["due_ms"] / 1000 - time.time() - 3600) < 60
        assert await listener.forget() == []
        with pytest.raises(gr.Unknown, match="less than a second"):
            await listener.dun(1, 0.5)


async def test_a_handler_that_computes_past_its_lease_loses_nothing(greenroom_node: Program) -> None:
    async with greenroom_node.host(Member) as host:
        session = next(iter(host.sessions.values()))
        assert session.welcome is not None
        seconds = session.welcome.lease_ms / 1000 + 1
        with pytest.raises(gr.Unknown) if seconds > 9 else _nothing():
            assert await host.ref(Member, "m", by=30).compute(seconds) == 0
        assert not session.lost


class _nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


async def test_a_host_that_is_killed_is_replaced_and_its_reads_run_again(greenroom_node: Program, tmp_path: Path) -> None:
    """L1: by the process's end, not by the lease's."""
    other = tmp_path / "other.py"
    other.write_text(f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nimport test_node as t\nt.gr.serve(t.Member)\n")
    environment = os.environ | {"GREENROOM_HOST": greenroom_node.url}
    process = subprocess.Popen([sys.executable, str(other)], env=environment)
    try:
        async with greenroom_node.client() as client:
            await until_answered(client)
            running = asyncio.ensure_future(client.ref(Member, "k", by=20).slow(10))
            reading = asyncio.ensure_future(client.ref(Member, "r", by=20).slow_read(0.5))
            await asyncio.sleep(0.3)
            async with greenroom_node.host(Member):
                process.kill()
                with pytest.raises(gr.Unknown) as lost:
                    await running
                assert lost.value.reason == "HostLost"
                assert await reading == 0
                assert await client.ref(Member, "k", by=20).see() == 1
    finally:
        process.kill()
        process.wait()


async def until_answered(client: gr.Host) -> None:
    while True:
        try:
            await client.ref(Member, "first", by=5).see()
            return
        except gr.Refused:
            await asyncio.sleep(0.02)


async def test_a_host_that_drains_fails_no_call(greenroom_node: Program) -> None:
    async with greenroom_node.client() as client:
        first = greenroom_node.host(Purse)
        await first.start()
        failed: list[BaseException] = []
        done = asyncio.Event()

        async def pay(name: str) -> int:
            count = 0
            while not done.is_set():
                try:
                    await client.ref(Purse, name, by=10).deposit(1)
                    count += 1
                except gr.Failure as error:
                    failed.append(error)
            return count

        payers = [asyncio.ensure_future(pay(f"p{number}")) for number in range(8)]
        await asyncio.sleep(0.2)
        async with greenroom_node.host(Purse):
            await first.drain()
            await first.close()
            await asyncio.sleep(0.2)
            done.set()
            counts = await asyncio.gather(*payers)
            assert failed == []
            assert [await client.ref(Purse, f"p{number}", by=10).get() for number in range(8)] == counts


class Guest(gr.Actor, migrate=True):
    visits: int = 0

    async def visit(self) -> int:
        self.visits += 1
        return self.visits


async def test_what_an_actor_holds_goes_along_when_its_host_drains(greenroom_node: Program) -> None:
    async with greenroom_node.client() as client:
        first = greenroom_node.host(Guest)
        await first.start()
        guests = [client.ref(Guest, f"g{number}", by=10) for number in range(8)]
        assert [await guest.visit() for guest in guests] == [1] * 8
        async with greenroom_node.host(Guest):
            await first.drain()
            await first.close()
            assert [await guest.visit() for guest in guests] == [2] * 8


async def test_a_frozen_host_acts_no_more_when_it_wakes(greenroom_node: Program, tmp_path: Path) -> None:
    """L2, on a real process: SIGSTOP past the lease."""
    other = tmp_path / "other.py"
    other.write_text(f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nimport test_node as t\nt.gr.serve(t.Purse)\n")
    environment = os.environ | {"GREENROOM_HOST": greenroom_node.url}
    process = subprocess.Popen([sys.executable, str(other)], env=environment)
    try:
        async with greenroom_node.client() as client:
            purse = client.ref(Purse, "ada", by=20)
            while True:
                try:
                    await purse.deposit(1)
                    break
                except gr.Refused:
                    await asyncio.sleep(0.02)
            process.send_signal(signal.SIGSTOP)
            async with greenroom_node.host(Purse):
                assert await purse.get() == 1
                assert await purse.deposit(1) == 2
                process.send_signal(signal.SIGCONT)
                for expected in range(3, 50):
                    assert await purse.deposit(1) == expected
    finally:
        process.kill()
        process.wait()


async def test_a_node_that_starts_again_is_dialled_again(greenroom_node: Program) -> None:
    async with greenroom_node.host(Member) as host:
        assert await host.ref(Member, "m", by=5).see() == 1
        await asyncio.to_thread(greenroom_node.restart)
        while True:
            try:
                assert await host.ref(Member, "m", by=5).see() == 1
                break
            except (gr.Refused, gr.Unknown):
                await asyncio.sleep(0.02)


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


async def test_a_reliable_turn_that_would_be_another_one_after_a_failover_is_found() -> None:
    node = Program("--journal", "memory:", "--rerun")
    try:
        async with node.host(Urn) as host:
            one, other = host.ref(Urn, "one", by=20), host.ref(Urn, "other", by=20)
            assert [await one.choose(), await one.choose(), await other.choose()] == [1, 2, 1]
            await one.later()
            await one.ask("other")
            while len(await one.look()) < 4:
                await asyncio.sleep(0.02)
            with pytest.raises(gr.Failure, match="urn/other.draw would commit.*field `drawn` differs.*cx.choose"):
                await other.draw()
            assert len(await other.look()) == 1
    finally:
        node.stop()
