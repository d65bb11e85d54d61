"""The probe of Python for the cases of `test_languages.py`: one actor in four forms."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import greenroom as gr


class Broke(gr.ActorError):
    at: int


class Probe(gr.Actor):
    value: int = 0

    async def add(self, n: int) -> int:
        self.value += n
        return self.value

    @gr.read
    async def get(self) -> int:
        return self.value

    @gr.read
    async def echo(self, value: Any) -> Any:
        return value

    async def fail(self) -> int:
        self.value += 1
        raise Broke(at=self.value)

    async def panic(self) -> None:
        self.value += 1000
        raise ValueError("in the middle")

    async def call(self, kind: str, key: str, method: str, arguments: dict[str, Any]) -> Any:
        return await getattr(self.cx.ref(kind, key), method)(**arguments)

    async def carry(
        self, kind: str, key: str, method: str, arguments: dict[str, Any], context: dict[str, str] | None = None, idempotency_key: str | None = None
    ) -> Any:
        laden = self.cx.ref(kind, key, context=context, idempotency_key=idempotency_key)
        return await getattr(laden, method)(**arguments)

    @gr.read
    async def told(self) -> dict[str, str]:
        return self.cx.context

    async def send(self, kind: str, key: str, n: int) -> int:
        self.value -= n
        await self.cx.send(kind, key).add(n=n)
        return self.value

    async def later(self, ms: int, n: int) -> None:
        self.cx.after(ms / 1000, self.add, n)

    async def remind(self, ms: int, n: int) -> None:
        await self.cx.remind(self.add, n, after=ms / 1000)

    async def rest(self) -> None:
        self.cx.deactivate()

    async def move(self, node: str) -> None:
        await self.cx.migrate(node)

    @gr.read
    async def where(self) -> int:
        return os.getpid()

    async def slow(self, ms: int) -> int:
        self.value += 1
        await asyncio.sleep(ms / 1000)
        return self.value

    @gr.read
    async def look(self, ms: int) -> int:
        await asyncio.sleep(ms / 1000)
        return self.value

    @gr.read
    async def count(self, upto: int) -> AsyncIterator[int]:
        for number in range(upto):
            yield number


class Volatile(Probe, kind="python_volatile"):
    """Keeps nothing."""


class Traveller(Probe, kind="python_traveller", migrate=True):
    """Takes along what it holds."""


class Persistent(Probe, kind="python_persistent", persistent=True, save="turn"):
    """Is saved with each turn."""


class Reliable(Probe, kind="python_reliable", reliable=True):
    """Commits each turn."""


if __name__ == "__main__":
    gr.serve(Volatile, Traveller, Persistent, Reliable)
