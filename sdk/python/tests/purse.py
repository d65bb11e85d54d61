"""One side of the payments of `test_payments.py`: reliable actors in Python, which pay others in Go."""

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

    @gr.read
    async def look(self) -> Books:
        return Books(self.coins, self.paid, self.got)


if __name__ == "__main__":
    gr.serve(PyPurse)
