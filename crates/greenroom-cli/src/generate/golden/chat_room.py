# Actors of kind chat_room, version 2. Written by `greenroom generate`: do not edit.
# Digest 3158434407ba22667e971872af54d7f6e8bd9156a128b9925b710e839dc7f33b.
# pyright: reportUnusedImport=false
from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

import greenroom as gr

LEFT_OUT: Any = None
"""What an argument is that is not sent."""


Entry = TypedDict("Entry", {"answers": "NotRequired[list[Entry]]", "class": "int", "user": "str"})


Index: TypeAlias = "dict[str, Any]"


Mood: TypeAlias = "Literal[\"Calm\"] | Literal[\"Glad\"] | Literal[\"Sad\"]"


class NotMember(TypedDict):
    user: str


Tree: TypeAlias = "list[Any]"


class ChatRoom(gr.Actor, kind="chat_room", version=2):
    """A room with "quotes" and */."""

    async def post(self, user: str, text: str, mood: Mood = LEFT_OUT) -> int:
        """Says it to all.

        Its own error: NotMember."""
        raise NotImplementedError

    @gr.read
    async def history(self, start: int | None = LEFT_OUT) -> AsyncIterator[Entry]:
        raise NotImplementedError
        yield

    @gr.read
    async def names(self) -> dict[str, tuple[bool, float]]:
        raise NotImplementedError

    async def clear(self) -> None:
        raise NotImplementedError

    async def plant(self, tree: Tree) -> Index:
        raise NotImplementedError

    # other takes what nobody has said: call it by the kind's name.
