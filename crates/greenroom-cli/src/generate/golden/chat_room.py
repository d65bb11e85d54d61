# Actors of kind chat_room, version 2. Written by `greenroom generate`: do not edit.
# Digest 85d6c00ab5e685634654a68c562701c9d39118ba6f64f8da9be69ba2946db2e1.
# pyright: reportUnusedImport=false
from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

import greenroom as gr

LEFT_OUT: Any = None
"""What an argument is that is not sent."""


Entry = TypedDict("Entry", {"answers": "NotRequired[list[Entry]]", "class": "int", "user": "str"})


Mood: TypeAlias = "Literal[\"Calm\"] | Literal[\"Glad\"] | Literal[\"Sad\"]"


class NotMember(TypedDict):
    user: str


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

    # other takes what nobody has said: call it by the kind's name.
