"""Actors that tests have at a scripted node."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import greenroom as gr


class Counter(gr.Actor, persistent=True, save="turn"):
    count: int = 0

    async def add(self, by: int) -> int:  # 0
        self.count += by
        return self.count

    async def break_off(self) -> None:  # 1
        self.count += 1000
        raise RuntimeError("in the middle")

    @gr.read
    async def get(self) -> int:  # 2
        return self.count

    async def save_now(self) -> None:  # 3
        await self.cx.save()


class Slow(gr.Actor):
    seen: list[int] = []

    async def ask(self) -> str:  # 0
        try:
            await self.cx.ref(Counter, "c").get()
        except gr.Fenced:
            ENDED.append("fenced")
            try:
                await self.cx.ref(Counter, "c").get()
            except gr.Fenced:
                ENDED.append("again")
            raise
        return "went on"

    async def compute(self, seconds: float) -> None:  # 1
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pass

    async def long(self) -> None:  # 2
        self.seen.append(1)
        await asyncio.sleep(0.1)
        self.seen.append(2)

    @gr.read
    async def watch(self) -> AsyncIterator[int]:  # 3
        while True:
            yield len(self.seen)


class Acting(gr.Actor):
    """Says when it begins, and goes on when its test says so."""

    steps: int = 0

    async def activated(self) -> None:
        if self.cx.key == "waits":
            await self.act("call")

    async def act(self, what: str) -> None:  # 0
        self.steps += 1
        try:
            await reached()
            match what:
                case "call":
                    await self.cx.ref(Counter, "c").get()
                case "send":
                    await self.cx.send(Counter, "c").add(1)
                case "timer":
                    self.cx.after(1, self.act, "timer")
                case "consume":
                    async for _ in self.cx.ref(Acting, "other").watch():
                        await reached()
                case _:
                    pass
        except (gr.Fenced, asyncio.CancelledError) as error:
            ENDED.append(type(error).__name__)
            raise
        self.steps += 1

    @gr.read
    async def count(self) -> AsyncIterator[int]:  # 1
        while True:
            yield self.steps

    @gr.read
    async def watch(self) -> AsyncIterator[int]:  # 2
        while True:
            try:
                await reached()
            except asyncio.CancelledError:
                ENDED.append("CancelledError")
                raise
            yield self.steps


class Steps:
    """Where turns wait for their test."""

    def anew(self) -> None:
        ENDED.clear()
        self.began, self.goes = asyncio.Semaphore(0), asyncio.Semaphore(0)


async def reached() -> None:
    STEPS.began.release()
    await STEPS.goes.acquire()


STEPS = Steps()
ENDED: list[str] = []
ACT, COUNT, ITEMS = range(3)
ADD, BREAK_OFF, GET, SAVE_NOW = range(4)
ASK, COMPUTE, LONG, WATCH = range(4)


def msg(payload: bytes) -> Any:
    from msgspec import msgpack

    return msgpack.decode(payload[2:])
