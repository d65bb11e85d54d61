"""A connection to one shard of a node: what goes over it, in batches, and what is asked for and answered."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import errors, frames
from .errors import Fenced, Refused
from .frames import Reader, frame, text, varint
from .turn import Seat, Turn

if TYPE_CHECKING:
    from .session import Session


class Connection(asyncio.Protocol):
    """Frames leave with their round's batch, those that cost credit as there is room, and requests get their answers."""

    def __init__(self, session: Session, shard: int) -> None:
        self.session = session
        self.shard = shard
        self.loop = session.loop
        self.requests: dict[int, asyncio.Future[tuple[int, bytes]]] = {}
        self.dead = False
        self.socket: socket.socket | None = None
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._batching = False
        self._flush_due = False
        self._routes: dict[tuple[str, str], bytes] = {}
        self._numbers = 0
        self._sent = 0
        self._granted = session.window
        self._blocked: deque[asyncio.Future[None]] = deque()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self.session.way.request() + self.session.join(self.shard))

    def write(self, data: bytes) -> None:
        """Sends a frame with the round's batch."""
        self._out.append(data)
        if len(self._out) >= BATCH:
            self.flush()
        elif not self._batching and not self._flush_due:
            self._flush_due = True
            self.loop.call_soon(self.flush)

    def flush(self) -> None:
        self._flush_due = False
        if self._out and self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(self._out))
        self._out.clear()

    def close(self) -> None:
        self.flush()
        if self._transport is not None:
            self._transport.close()

    def forget(self) -> None:
        """In a forked child: closes what is the parent's, and serves none of it."""
        self.dead = True
        if self.socket is not None:
            self.socket.close()

    # What costs credit, and what is answered.

    def check(self, seat: Seat | None, turn: Turn | None = None) -> None:
        """Raises `Fenced` if a seat, its turn or the session may no longer act."""
        if self.session.is_over():
            self.session.lose("its lease is over")
        if (turn is not None and turn.dead) or (seat is not None and seat.dead):
            raise Fenced
        if self.dead:
            raise Refused("Unreachable", {"node": self.session.node_name, "reason": "the connection is lost"})

    @property
    def has_room(self) -> bool:
        """Whether a frame that costs credit may go at once."""
        return self._sent < self._granted and not self._blocked

    async def room(self) -> None:
        """Waits until a frame that costs credit may go. Whoever waits longest goes first."""
        waiter: asyncio.Future[None] = self.loop.create_future()
        self._blocked.append(waiter)
        try:
            await waiter
        finally:
            # Whoever it is may be too late to send: the next one looks for itself.
            self.loop.call_soon(self._wake)

    def _wake(self) -> None:
        while self._blocked and self._sent < self._granted:
            waiter = self._blocked.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def pay(self, data: bytes) -> None:
        """Sends a frame that costs credit."""
        if len(data) - 4 > self.session.frame_max:
            words = f"{len(data)} bytes are over the bound of {self.session.frame_max}; send less"
            raise Refused("Unsendable", {"message": words})
        self._sent += len(data)
        self.write(data)
        self._wake()

    def number(self) -> int:
        """The next number of a request or a stream."""
        self._numbers += 1
        return self._numbers

    def route(self, kind: str, method: str, version: int) -> bytes:
        """The number of a method on this lane, defined at its first use."""
        found = self._routes.get((kind, method))
        if found is None:
            found = varint(len(self._routes))
            self.write(frame(frames.DEFINE, found, text(kind), text(method), varint(version)))
            # Not before it is said: the node knows no route of names that cannot be.
            self._routes[kind, method] = found
        return found

    async def request(self, make: Callable[[int], bytes], seat: Seat | None, turn: Turn | None) -> tuple[int, bytes]:
        """Sends the frame that `make` makes for a request's number; the answer's status and payload."""
        if not self.has_room:
            await self.room()
        self.check(seat, turn)
        if len(self.requests) >= REQUESTS_MAX:
            raise Refused("Overloaded", {"queue": "requests of a host's lane", "bound": REQUESTS_MAX})
        number = self.number()
        self.pay(make(number))
        answer = self.requests[number] = self.loop.create_future()
        try:
            found = await answer
        except asyncio.CancelledError:
            if self.requests.pop(number, None) is not None and not self.dead:
                self.write(frame(frames.CANCEL_CALL, varint(number)))
            raise
        finally:
            if seat is not None:
                self.check(seat, turn)
        return found

    async def ask(self, turn: Turn | None, seat: Seat | None, operation: int, what: dict[str, Any]) -> bytes:
        """Asks the node for something; the answer's payload."""
        status, payload = await self.request(lambda number: _ask(number, turn, seat, operation, what), seat, turn)
        if status != frames.OK:
            raise errors.decode(status, payload)
        return payload

    def tell(self, turn: Turn | None, seat: Seat | None, operation: int, what: dict[str, Any]) -> None:
        """The same, of what is not answered."""
        self.check(seat, turn)
        self.pay(_ask(0, turn, seat, operation, what))

    def _on_reply(self, reader: Reader) -> None:
        request = self.requests.pop(reader.varint(), None)
        status = reader.u8()
        if request is not None and not request.done():
            request.set_result((status, reader.rest()))

    def _on_credit(self, reader: Reader) -> None:
        self._granted = max(self._granted, self.session.window + reader.varint())
        self._wake()


def _ask(number: int, turn: Turn | None, seat: Seat | None, operation: int, what: dict[str, Any]) -> bytes:
    head = varint(number) + varint(turn.number if turn else 0) + varint(seat.number if seat else 0)
    return frame(frames.ASK, head, bytes((operation,)), frames.packed(what))


BATCH = 16
"""Frames that leave before a round is over: the node goes on with them meanwhile."""

REQUESTS_MAX = 65_536
