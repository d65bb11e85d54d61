"""Reliable actors and state machines of a host, against the real program."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from real_node import pytestmark as pytestmark

import greenroom as gr
from greenroom.testing import Program


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


class Plain(gr.Actor):
    @gr.read
    async def look(self) -> int:
        return 1


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


async def test_a_reliable_kind_needs_a_declaration_in_a_multi_cluster_and_other_kinds_stay(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    listed = '[geo.clusters.greenroom]\ngateways = ["127.0.0.1:1"]\n'
    file.write_text(listed)
    node = Program("--journal", "memory:", "--config", str(file))
    try:
        async with node.host(Pouch, Plain) as host:
            assert await host.ref(Plain, "ada", by=20).look() == 1
            with pytest.raises(gr.Refused, match="pouch"):
                await host.ref(Pouch, "ada", by=5).pay("bob", 5)
        with pytest.raises(gr.NotLetIn, match=r"write `instances = \"per_cluster\"` under `\[geo\.kinds\.pouch\]`"):
            async with node.host(Pouch):
                pass
        file.write_text(listed + '[geo.kinds.pouch]\ninstances = "per_cluster"\n')
        node.restart()
        async with node.host(Pouch) as host:
            assert await host.ref(Pouch, "ada", by=20).pay("bob", 5) == -5
    finally:
        node.stop()
