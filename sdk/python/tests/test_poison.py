"""A message whose turn or activation hook kills its host is parked after three deaths, and everything else goes on: against the real program."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from real_node import pytestmark as pytestmark

import greenroom as gr
from greenroom.testing import Program

HOST = """
import os, sys
import greenroom as gr

class Fuse(gr.Actor, reliable=True):
    count: int = 0

    async def pass_on(self, to: str) -> None:
        await self.cx.send(Fuse, to).light()

    async def light(self) -> None:
        with open(sys.argv[1], "a") as deaths:
            deaths.write("died\\n")
        os._exit(9)

    async def open(self, to: str) -> None:
        await self.cx.send(Box, to).add()

    async def add(self) -> int:
        self.count += 1
        return self.count

class Box(gr.Actor, reliable=True):
    count: int = 0

    async def activated(self) -> None:
        if self.cx.key == "armed":
            with open(sys.argv[1], "a") as deaths:
                deaths.write("died\\n")
            os._exit(9)

    async def add(self) -> int:
        self.count += 1
        return self.count

class Other(gr.Actor):
    async def hello(self) -> str:
        return "hello"

gr.serve(Fuse, Box, Other)
"""


class Fuse(gr.Actor, reliable=True):
    async def pass_on(self, to: str) -> None: ...
    async def light(self) -> None: ...
    async def open(self, to: str) -> None: ...
    async def add(self) -> int: ...  # type: ignore[empty-body]


class Box(gr.Actor, reliable=True):
    async def add(self) -> int: ...  # type: ignore[empty-body]


class Other(gr.Actor):
    async def hello(self) -> str: ...  # type: ignore[empty-body]


def parked(node: Program) -> list[dict[str, object]]:
    with urllib.request.urlopen(node.http + "/-/reliable/parked") as answer:
        return json.load(answer)["parked"]


@pytest.mark.parametrize(("first", "to", "method"), [("pass_on", "lit", "light"), ("open", "armed", "add")])
async def test_a_message_that_kills_its_host_is_parked_after_three_deaths_and_other_actors_answer(
    tmp_path: Path, first: str, to: str, method: str
) -> None:
    (tmp_path / "poison.py").write_text(HOST)
    deaths = tmp_path / "deaths"
    node = Program("--journal", f"sqlite:{tmp_path / 'journal'}")
    supervised = True

    async def supervise() -> None:
        while supervised:
            environment = os.environ | {"GREENROOM_HOST": node.url}
            command = [sys.executable, str(tmp_path / "poison.py"), str(deaths)]
            process = subprocess.Popen(command, env=environment)
            try:
                while process.poll() is None and supervised:
                    await asyncio.sleep(0.02)
            finally:
                process.kill()
                process.wait()

    supervisor = asyncio.ensure_future(supervise())
    try:
        async with node.client() as client:
            await until_answered(getattr(client.ref(Fuse, "first", by=20, idempotency_key="once"), first), to)
            while not await asyncio.to_thread(parked, node):
                await asyncio.sleep(0.1)
            [message] = await asyncio.to_thread(parked, node)
            assert message["method"] == method
            assert "3 processes" in str(message["error"])
            assert deaths.read_text().count("died") == 3
            assert await until_answered(client.ref(Other, "x", by=20).hello) == "hello"
            assert await until_answered(client.ref(Fuse, "lit", by=20).add) == 1
            assert await until_answered(client.ref(Box, "safe", by=20).add) == 1
            assert deaths.read_text().count("died") == 3
    finally:
        supervised = False
        await supervisor
        node.stop()


async def until_answered(method: object, *arguments: object) -> object:
    while True:
        try:
            return await method(*arguments)  # type: ignore[operator]
        except gr.Failure:
            await asyncio.sleep(0.05)
