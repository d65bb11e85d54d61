"""Tests against the real program: where there is none they are skipped, unless `GREENROOM_LANGUAGES=all`; their actors; its door."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from typing import Any

import pytest

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
        await asyncio.sleep(seconds)
        return self.seen

    async def slow(self, seconds: float) -> str:
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
