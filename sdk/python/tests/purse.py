"""One side of the payments of `test_payments.py`: reliable actors in Python, which pay others in Go; actors with reminders, and actors
that kill their host."""

import os
from dataclasses import dataclass

import greenroom as gr


@dataclass
class Books:
    coins: int
    paid: dict[str, int]
    got: dict[str, int]


class PyPurse(gr.Actor, reliable=True):
    coins: int = 0
    paid: dict[str, int] = {}
    got: dict[str, int] = {}

    async def pay(self, order: str, to: str, coins: int) -> int:
        self.coins -= coins
        self.paid[order] = self.paid.get(order, 0) + 1
        await self.cx.send("go_purse", to).take(order=order, coins=coins)
        return self.coins

    async def take(self, order: str, coins: int, to: str = "") -> None:
        self.coins += coins
        self.got[order] = self.got.get(order, 0) + 1

    async def poison(self, to: str) -> None:
        await self.cx.send(PyPoison, to).swallow()

    @gr.read
    async def look(self) -> Books:
        return Books(self.coins, self.paid, self.got)


class PyPoison(gr.Actor, reliable=True):
    """Dies of the first message that it gets, and its host with it."""

    async def swallow(self) -> None:
        os._exit(9)


class PyAlarm(gr.Actor, persistent=True, save="turn"):
    """Counts how often each of its reminders has rung."""

    rung: dict[str, int] = {}

    async def set(self, name: str, after: float) -> None:
        await self.cx.remind(self.ring, name, after=after, name=name)

    async def ring(self, name: str) -> None:
        self.rung[name] = self.rung.get(name, 0) + 1

    @gr.read
    async def look(self) -> dict[str, int]:
        return self.rung


if __name__ == "__main__":
    gr.serve(PyPurse, PyPoison, PyAlarm)
