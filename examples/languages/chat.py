"""A chat that costs: members post in rooms, for a coin from their wallets. The same in `chat.ts` and `chat.go`, so each kind may run in any of them.

    greenroom run --table sqlite:chat.db --journal sqlite:journal.db python examples/languages/chat.py
    curl -d '{"order": "gift", "amount": 10}' localhost:7070/wallet/ada/deposit
    curl -d '{"room": "lobby"}' localhost:7070/member/bob/join
    curl -d '{"room": "lobby", "text": "hello"}' localhost:7070/member/ada/say
    curl -d '{}' localhost:7070/member/bob/inbox
    curl -d '{}' localhost:7070/wallet/lobby/balance
    curl -N -d '{}' -H 'accept: text/event-stream' localhost:7070/room/lobby/replay

`chat.py room` serves rooms alone, and so on. Wallets are reliable, and want the journal: without one they are refused, and nobody can post.
"""

import sys
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass

import greenroom as gr

KEPT = 100
"""Messages that a room and a member keep, and orders that a wallet remembers: whoever repeats one does so within seconds."""


class Empty(gr.ActorError):
    """There is less in the wallet than is asked for."""

    balance: int


class NotMember(gr.ActorError):
    """Who posts must be able to pay."""

    user: str


@dataclass
class Message:
    number: int
    order: str
    user: str
    text: str


@dataclass
class Done:
    """An order, and what it was answered."""

    order: str
    balance: int


class Member(gr.Actor):
    """A user who is online: what it has heard lasts as long as its activation."""

    heard: list[Message] = []

    async def join(self, room: str) -> int:
        """Hears from now on what is said in a room, and what was said before."""
        await self.cx.topic(f"rooms/{room}", Message).subscribe(self.hear)
        async for message in self.cx.ref(Room, room).replay():
            await self.hear(message)
        return len(self.heard)

    async def hear(self, message: Message) -> None:
        """A message may come twice, and counts once."""
        if all(message.order != known.order for known in self.heard):
            self.heard = [*self.heard, message][-KEPT:]

    async def say(self, room: str, text: str) -> int:
        order, to = uuid.uuid4().hex, self.cx.ref(Room, room)
        try:
            return await to.post(order, self.cx.key, text)
        except gr.Unknown:  # It may be posted, or paid: the same order again does what is left of it.
            return await to.post(order, self.cx.key, text)

    @gr.read
    async def inbox(self) -> list[Message]:
        return self.heard


class Room(gr.Actor, persistent=True, save="turn"):
    """What was said last. Who posts is answered when it is stored."""

    messages: list[Message] = []

    async def post(self, order: str, user: str, text: str) -> int:
        """Says something, for a coin from the user's wallet to that of the room's name; gives the message's number."""
        order = f"{self.cx.key}/{order}"
        for message in self.messages:
            if message.order == order:
                return message.number
        try:
            await self.cx.ref(Wallet, user).pay(order, self.cx.key, 1)
        except Empty:
            raise NotMember(user=user) from None
        message = Message(self.messages[-1].number + 1 if self.messages else 1, order, user, text)
        await self.cx.topic(f"rooms/{self.cx.key}", Message).publish(message)
        self.messages = [*self.messages, message][-KEPT:]
        return message.number

    @gr.read
    async def history(self, start: int = 0) -> list[Message]:
        """The messages from a number on."""
        return [message for message in self.messages if message.number >= start]

    async def replay(self, start: int = 0) -> AsyncIterator[Message]:
        """The same, as a stream: one message after the other, as the caller has room."""
        for message in await self.history(start):
            yield message


class Wallet(gr.Actor, reliable=True):
    """What a user has. What a turn changes and what it sends is one commit; an order is carried out once, however often it comes."""

    coins: int = 0
    orders: list[Done] = []

    async def deposit(self, order: str, amount: int) -> int:
        return self._once(order, amount)

    async def pay(self, order: str, to: str, amount: int) -> int:
        if self._is_new(order):
            if not 0 < amount <= self.coins:
                raise Empty(balance=self.coins)
            await self.cx.send(Wallet, to).take(amount)
        return self._once(order, -amount)

    async def take(self, amount: int) -> None:
        self.coins += amount

    @gr.read
    async def balance(self) -> int:
        return self.coins

    def _is_new(self, order: str) -> bool:
        return all(done.order != order for done in self.orders)

    def _once(self, order: str, amount: int) -> int:
        if self._is_new(order):
            self.coins += amount
            self.orders = [*self.orders, Done(order, self.coins)][-KEPT:]
        return next(done.balance for done in self.orders if done.order == order)


KINDS = {"member": Member, "room": Room, "wallet": Wallet}

if __name__ == "__main__":
    gr.serve(*(KINDS[name] for name in sys.argv[1:] or KINDS))
