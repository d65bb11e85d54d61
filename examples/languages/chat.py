"""A chat room whose members pay for what they say from a wallet, which outlives the node:

    greenroom run --table sqlite:chat.db python examples/languages/chat.py
    curl -d '{"amount": 10}' localhost:7070/purse/ada/deposit
    curl -d '{"user": "ada", "text": "hello"}' localhost:7070/chat_room/lobby/post
    curl -d '{}' localhost:7070/chat_room/lobby/history
    curl -N -d '{}' -H 'accept: text/event-stream' localhost:7070/chat_room/lobby/replay
"""

from collections.abc import AsyncIterator

import greenroom as gr


class Empty(gr.ActorError):
    """There is less in the purse than is asked for."""

    balance: int


class NotMember(gr.ActorError):
    """Who posts must be able to pay."""

    user: str


class Purse(gr.Actor, persistent=True, save="turn"):
    """What a user has. A caller is answered when it is stored."""

    balance: int = 0

    async def deposit(self, amount: int) -> int:
        self.balance += amount
        return self.balance

    async def pay(self, amount: int) -> int:
        if amount > self.balance:
            raise Empty(balance=self.balance)
        self.balance -= amount
        return self.balance


class ChatRoom(gr.Actor, idle=600):
    """A room. Its messages last as long as its activation."""

    messages: list[str] = []

    async def post(self, user: str, text: str) -> int:
        """Says something, for 1 from the user's purse."""
        try:
            await self.cx.ref(Purse, user, by=2).pay(1)
        except Empty:
            raise NotMember(user=user) from None
        self.messages.append(f"{user}: {text}")
        await self.cx.topic(f"rooms/{self.cx.key}", str).send(self.messages[-1])
        return len(self.messages)

    @gr.read
    async def history(self, start: int = 0) -> list[str]:
        """What was said."""
        return self.messages[start:]

    async def replay(self, start: int = 0) -> AsyncIterator[str]:
        """The same, as a stream: one message after the other, as the caller has room."""
        for message in self.messages[start:]:
            yield message


if __name__ == "__main__":
    gr.serve(ChatRoom, Purse)
