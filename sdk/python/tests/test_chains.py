"""Chains of calls through hosts, at a node of two shards: a cycle is named at once, and nothing else is taken for one."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from real_node import pytestmark as pytestmark

import greenroom as gr
from greenroom.testing import Program


class Linked(gr.Actor):
    """Calls the next actor of a chain."""

    gate: asyncio.Event

    async def go_on(self, rest: list[str]) -> list[str]:
        if not rest:
            return []
        try:
            return await self.cx.ref(Linked, rest[0]).go_on(rest[1:])
        except gr.Cycle as cycle:
            return cycle.path

    async def wait(self) -> list[str]:
        await Linked.gate.wait()
        return []


class Guest(gr.Actor):
    """Calls the foyer that its key names, as its key says, in its hooks."""

    async def activated(self) -> None:
        verb, _, foyer = self.cx.key.partition(" ")
        if verb == "enters" and (path := await self.cx.ref(Foyer, foyer).enter(self.cx.key)):
            raise RuntimeError(path)
        if verb == "opens":
            await self.cx.ref(Foyer, foyer).open()

    async def deactivating(self, why: str) -> None:
        verb, _, foyer = self.cx.key.partition(" ")
        if verb == "leaves":
            await self.cx.ref(Foyer, foyer).enter(self.cx.key)

    async def hello(self) -> None:
        pass

    async def go(self) -> None:
        self.cx.deactivate()


class Foyer(gr.Actor):
    said: str = ""

    async def enter(self, guest: str) -> str:
        self.said = ""
        try:
            await self.cx.ref(Guest, guest).hello()
        except gr.Failure as error:
            self.said = str(error)
        return self.said

    async def open(self) -> None:
        pass

    @gr.read
    async def last(self) -> str:
        return self.said


@pytest.fixture
def node() -> Iterator[Program]:
    node = Program("--shards", "2")
    yield node
    node.stop()


KEYS = range(6)
"""Actors of so many names are on both shards."""


async def test_a_cycle_is_named_whichever_shards_its_actors_are_on(node: Program) -> None:
    async with node.host(Linked) as host:
        for key in KEYS:
            a, b, c = (f"{name}{key}" for name in "abc")
            # Each is where its first caller is.
            for name in (a, b, c):
                await host.ref(Linked, name).go_on([])
            for chain in ([a, a], [a, b, a], [a, b, c, a]):
                path = await host.ref(Linked, chain[0]).go_on(chain[1:])
                assert path == [f"linked/{key}" for key in chain]


async def test_who_waits_for_a_busy_actor_is_named_by_waits_and_is_no_cycle(node: Program) -> None:
    Linked.gate = asyncio.Event()
    async with node.host(Linked) as host:
        busy = asyncio.ensure_future(host.ref(Linked, "busy").wait())
        waiting = [asyncio.ensure_future(host.ref(Linked, f"a{key}").go_on(["busy"])) for key in KEYS]
        waiters: list[str] = []
        while waiters != [f"linked/a{key}" for key in KEYS] and not any(call.done() for call in waiting):
            await asyncio.sleep(0.05)
            waits = await asyncio.to_thread(_get, f"{node.http}/-/waits?over=1ms")
            turns = [turn for turn in waits["turns"] if turn["turn"] == "linked/busy.wait"]
            waiters = turns[0]["waiters"] if turns else []
        Linked.gate.set()
        assert await asyncio.gather(busy, *waiting) == [[]] * (1 + len(KEYS))


async def test_a_cycle_through_the_hook_of_an_activation_is_named_at_once(node: Program) -> None:
    async with node.host(Guest, Foyer) as host:
        for key in KEYS:
            guest, foyer = f"enters f{key}", f"foyer/f{key}"
            await host.ref(Foyer, f"f{key}").open()
            with pytest.raises(gr.Refused, match=f"guest/{guest} -> {foyer} -> guest/{guest}"):
                await host.ref(Guest, guest).hello()
            # The foyer waits for the activation.
            said = await host.ref(Foyer, f"f{key}").enter(f"opens f{key}")
            assert f"{foyer} -> guest/opens f{key} -> {foyer}" in said
            guest = f"leaves f{key}"
            await host.ref(Guest, guest).go()
            # The next activation comes behind the last hook of this one.
            await host.ref(Guest, guest).hello()
            assert f"guest/{guest} -> {foyer} -> guest/{guest}" in await host.ref(Foyer, f"f{key}").last()


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)
