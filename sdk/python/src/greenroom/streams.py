"""Streams of replies: what a generator gives, and what is consumed of others."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from . import errors, frames
from .errors import Unknown
from .frames import frame, varint
from .turn import Seat, Turn, current, outcome

if TYPE_CHECKING:
    from .kind import Method
    from .lane import Lane

log = logging.getLogger("greenroom")

WINDOW = 64
"""Items that may be under way to a consumer."""


class Outlet:
    """A generator of a seat: its items go as its consumer has room, and each step begins between exclusive turns."""

    def __init__(
        self, lane: Lane, seat: Seat, number: int, items: AsyncGenerator[Any, None], method: Method, turn: Turn
    ) -> None:
        self.lane = lane
        self.seat = seat
        self.number = number
        self._items = items
        self._method = method
        self._turn = turn
        self._sent = 0
        self._until = 0
        self._stopped = False
        self._room: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    def credit(self, window: int, consumed: int) -> None:
        """The consumer's word on its room. No window gives the stream up."""
        if window == 0:
            self.stop()
            return
        self._until = max(self._until, consumed + window)
        if self._task is None:
            self._task = self.lane.loop.create_task(self._run())
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def stop(self) -> None:
        """Ends the stream, and says so if anybody may still hear it."""
        self._stopped = True
        if self._task is not None:
            self._task.cancel()
        else:
            self._gone()

    def _gone(self) -> None:
        self.lane.outlets.pop(self.number, None)
        self.seat.streams.discard(self.number)

    async def _run(self) -> None:
        status, payload = frames.OK, b""
        actor = f"{self.seat.kind.name}/{self.seat.key}"
        current.set(None)
        try:
            while True:
                while self._sent >= self._until:
                    self._room = self.lane.loop.create_future()
                    await self._room
                if not self.lane.has_room:
                    await self.lane.room()
                # Last: whatever else it waits for, an exclusive turn may have begun meanwhile.
                while self.seat.exclusive is not None:
                    waiter: asyncio.Future[None] = self.lane.loop.create_future()
                    self.seat.waiting.append(waiter)
                    await waiter
                self.lane.check(self.seat)
                item = await anext(self._items)
                if self._stopped:
                    raise asyncio.CancelledError  # The generator has kept it for itself.
                self.lane.check(self.seat)
                written = self._method.reply.write(item, self._turn.codec)
                self.lane.pay(frame(frames.STREAM_ITEM, varint(self.number), varint(self._sent), written))
                self._sent += 1
        except StopAsyncIteration:
            pass
        except asyncio.CancelledError:
            status, payload = errors.encode(Unknown("Ended", {"actor": actor}))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            status, payload = outcome(self._turn, error)
        finally:
            self._gone()
            if not self.lane.dead:
                status, payload = self.lane.fitting(status, payload, f"the end of {actor}.{self._method.name}")
                end = varint(self.number) + varint(self._sent) + bytes((status,)) + payload
                self.lane.write(frame(frames.STREAM_END, end))
        try:
            await self._items.aclose()
        except Exception:
            log.exception("%s.%s failed as it was closed", actor, self._method.name)


class Inlet:
    """A stream that is consumed here: items in order, none left out, none twice."""

    def __init__(self, lane: Lane, number: int) -> None:
        self.lane = lane
        self.number = number
        self._items: deque[bytes] = deque()
        self._next = 0
        self._taken = 0
        self._said = 0
        self._over = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        lane.inlets[number] = self

    def item(self, number: int, payload: bytes) -> None:
        if number != self._next or len(self._items) >= WINDOW:
            raise frames.FrameError(f"item {number} of a stream came in the place of item {self._next}")
        self._next += 1
        self._items.append(payload)
        self._wake()

    def finish(self, count: int, status: int, payload: bytes) -> None:
        """The stream's end."""
        if status != frames.OK:
            self.end(errors.decode(status, payload))
        elif count != self._next:
            self.end(Unknown("Unreadable", {"message": "the stream's last items are missing"}))
        else:
            self.end(None)

    def end(self, error: Exception | None) -> None:
        if not self._over:
            self._over, self._error = True, error
        self.lane.inlets.pop(self.number, None)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def take(self) -> bytes | None:
        """The next item's payload; `None` at the end."""
        while not self._items:
            if self._over:
                if self._error is not None:
                    raise self._error
                return None
            self._waiter = self.lane.loop.create_future()
            await self._waiter
        self._taken += 1
        if self._taken - self._said >= WINDOW // 2 and not self._over:
            self._credit(WINDOW)
        return self._items.popleft()

    def close(self) -> None:
        """Gives the stream up."""
        if not self._over and not self.lane.dead:
            self._credit(0)
        self.end(None)

    def _credit(self, window: int) -> None:
        self._said = self._taken
        self.lane.write(frame(frames.STREAM_CREDIT, varint(self.number), varint(window), varint(self._taken)))
