"""Greenroom: virtual actors in Python, hosts and clients of Greenroom nodes.

    import greenroom as gr

    class ChatRoom(gr.Actor):
        messages: list[str] = []

        async def post(self, user: str, text: str) -> None:
            self.messages.append(f"{user}: {text}")

        @gr.read
        async def history(self) -> list[str]:
            return self.messages

    gr.serve(ChatRoom)
"""

from .actor import Actor, on, read
from .blocking import Client, connect_sync
from .context import Cx, Timer, Topic
from .errors import ActorError, Cycle, Failure, Fenced, Refused, Unknown
from .host import Host, connect, serve
from .kind import ClassError
from .ways import NoNode, NotLetIn

__all__ = [
    "Actor", "ActorError", "ClassError", "Client", "Cx", "Cycle", "Failure", "Fenced", "Host", "NoNode", "NotLetIn",
    "Refused", "Timer", "Topic", "Unknown", "connect", "connect_sync", "on", "read", "serve",
]  # fmt: skip
