"""References: calls of actors, with the class's own signatures."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import math
import reprlib
import time
from asyncio import Future
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Mapping
from typing import Any, Protocol, cast

from . import errors, frames
from .actor import Actor, kind_of
from .errors import Refused, Unknown
from .kind import Kind, Method
from .lane import Lane, call_frame
from .streams import WINDOW, Inlet
from .turn import Seat, Turn

log = logging.getLogger("greenroom")


class Caller(Protocol):
    """Where calls come from: an activation, or a client."""

    def scope(self) -> tuple[Seat | None, Turn | None]:
        """In whose name they are made."""
        ...

    def lane_now(self, kind: str, key: str) -> Lane | None:
        """The lane for calls of an actor, if there is one."""
        ...

    async def lane(self, kind: str, key: str) -> Lane:
        """The same; waits for a session."""
        ...

    def begin(self, message: Coroutine[Any, Any, None]) -> Future[None] | concurrent.futures.Future[None]:
        """Begins to send a one-way message, whether it is awaited or not."""
        ...


class Ref:
    """An actor, by its kind and key. Its methods make calls: those of its class, or any if only its kind is known."""

    __slots__ = ("_one_way", "_target")

    def __init__(
        self, caller: Caller, kind: type[Actor] | str, key: str, by: float | None, carried: bytes, one_way: bool = False
    ) -> None:
        self._target = Target(caller, kind, key, by, carried)
        self._one_way = one_way

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        target = self._target
        method = target.method(name)
        if self._one_way:
            return lambda *args, **named: Sent(target, name, _pack(name, method, args, named))
        if method is not None and method.stream:
            return lambda *args, **named: target.stream(name, method, _pack(name, method, args, named))
        return lambda *args, **named: target.call(name, method, _pack(name, method, args, named))

    def __repr__(self) -> str:
        return f"<{self._target.name}/{self._target.key}>"


KEY_BYTES_MAX = 400
KEY_RULE = "a text of 1 to 400 bytes of UTF-8, where each / and % counts as three, and neither . nor .."


class Target:
    """What a reference is to, and how it is called."""

    __slots__ = ("by", "caller", "carried", "key", "kind", "module", "name", "sized", "version")

    def __init__(self, caller: Caller, kind: type[Actor] | str, key: str, by: float | None, carried: bytes) -> None:
        sized = key.encode() if frames.is_text(key) else b""
        # So long are keys where stores escape them; the node counts in the same way.
        stored = len(sized) + 2 * (sized.count(b"/") + sized.count(b"%"))
        if not 0 < stored <= KEY_BYTES_MAX or key in (".", ".."):
            raise Refused("InvalidKey", {"message": f"a key is {KEY_RULE}, which {reprlib.repr(key)} is not"})
        self.caller = caller
        self.kind: Kind | None = None if isinstance(kind, str) else kind_of(kind)
        self.name = frames.name(kind, "kind") if isinstance(kind, str) else kind_of(kind).name
        self.module = self.kind.module if self.kind else ""
        self.version = self.kind.options.version if self.kind else 0
        self.key = key
        self.sized = frames.block(sized)
        self.by = None if by is None else _seconds(by)
        self.carried = carried

    def method(self, name: str) -> Method | None:
        if self.kind is None:
            frames.name(name, f"{self.name}: method")
            return None
        if name not in self.kind.by_name:
            raise AttributeError(f"{self.kind.cls.__name__} has no method {name!r} that callers have")
        return self.kind.by_name[name]

    async def call(self, name: str, method: Method | None, payload: bytes) -> Any:
        reply, lane = await self._ask(name, payload)
        if method is not None:
            return _read(method.reply.read, reply)
        value = _read(errors.value_of, reply)
        stream = _stream_name(value)
        return value if stream is None else self._items(lane, stream, None)

    async def stream(self, name: str, method: Method, payload: bytes) -> AsyncIterator[Any]:
        reply, lane = await self._ask(name, payload)
        stream = _stream_name(_read(errors.value_of, reply))
        if stream is None:
            raise Unknown("Unreadable", {"message": f"{self.name}.{name} gave no stream"})
        items = self._items(lane, stream, method)
        try:
            async for item in items:
                yield item
        finally:
            await items.aclose()

    def send(self, lane: Lane, name: str, payload: bytes) -> None:
        seat, turn = self.caller.scope()
        lane.check(seat, turn)
        left = int(self.by * 1e6) if self.by is not None else 0
        carried = with_seat(self.carried, seat, turn)
        lane.pay(call_frame(0, turn, lane.route(self.name, name, self.version), self.sized, left, carried, payload))

    async def _ask(self, name: str, payload: bytes) -> tuple[bytes, Lane]:
        until = time.monotonic() + self.by if self.by is not None else 0.0
        lane = self.caller.lane_now(self.name, self.key) or await self.caller.lane(self.name, self.key)
        seat, turn = self.caller.scope()
        carried = with_seat(self.carried, seat, turn)

        def make(number: int) -> bytes:
            left = max(1, int((until - time.monotonic()) * 1e6)) if until else 0
            return call_frame(number, turn, lane.route(self.name, name, self.version), self.sized, left, carried, payload)

        status, reply = await lane.request(make, seat, turn)
        if status != frames.OK:
            raise errors.decode(status, reply, self.module)
        return reply, lane

    async def _items(self, lane: Lane, name: str, method: Method | None):
        seat, turn = self.caller.scope()
        inlet = Inlet(lane, lane.number())
        try:
            what = {"name": name, "stream": inlet.number, "window": WINDOW}
            await lane.ask(turn, seat, frames.OPEN_STREAM, what)
            while (payload := await inlet.take()) is not None:
                if seat is not None:
                    lane.check(seat)
                yield _read(method.reply.read if method else errors.value_of, payload)
        finally:
            inlet.close()


class Sent:
    """A one-way message: it goes at once if there is room on a lane, else later. Awaited, it waits for that.

    Nobody hears what becomes of it. That it cannot be sent is raised where it is awaited, and logged otherwise.
    """

    __slots__ = ("_is_awaited", "_rest", "_what")

    def __init__(self, target: Target, name: str, payload: bytes) -> None:
        lane = target.caller.lane_now(target.name, target.key)
        self._what = f"{target.name}/{target.key}.{name}"
        self._is_awaited = False
        self._rest: Any = None
        if lane is not None and lane.has_room:
            target.send(lane, name, payload)
        else:
            self._rest = target.caller.begin(_send_later(target, name, payload))
            self._rest.add_done_callback(self._done)
            _, turn = target.caller.scope()
            if turn is not None and turn.seat.kind.options.reliable:
                turn.owed.append(self)

    def __await__(self) -> Generator[Any, None, None]:
        self._is_awaited = True
        if self._rest is not None:
            rest = self._rest if asyncio.isfuture(self._rest) else asyncio.wrap_future(self._rest)
            yield from rest.__await__()

    @property
    def rest(self) -> Any:
        """What is still to be done for it."""
        return self._rest

    @property
    def lost(self) -> BaseException | None:
        """Why it could not be sent, if nobody awaits it."""
        if self._is_awaited:
            return None
        return asyncio.CancelledError("its loop ends") if self._rest.cancelled() else self._rest.exception()

    def _done(self, _: Any) -> None:
        if (why := self.lost) is not None:
            log.error("the one-way message %s was not sent, and nobody awaits it: %s", self._what, why)


async def _send_later(target: Target, name: str, payload: bytes) -> None:
    lane = await target.caller.lane(target.name, target.key)
    if not lane.has_room:
        await lane.room()
    target.send(lane, name, payload)


def _seconds(by: float) -> float:
    if math.isnan(by):
        raise ValueError("by=nan bounds no call: give seconds, or None")
    return min(by, SECONDS_MAX)


def carried(context: Mapping[str, str] | None, idempotency_key: str | None = None) -> bytes:
    """What calls carry along, as it is in a Call."""
    if context is None and idempotency_key is None:
        return b"\0"
    fields: list[bytes] = []
    if context:
        for said in (*context.keys(), *context.values()):
            if not frames.is_text(said):
                raise Refused("Invalid", {"field": "context", "message": f"{said[:80]!r} has no form in UTF-8: carry another text"})
        pairs = b"".join(frames.text(key) + frames.text(value) for key, value in context.items())
        fields += (frames.varint(frames.CONTEXT), frames.block(pairs))
    if idempotency_key is not None:
        fields += (frames.varint(frames.IDEMPOTENCY_KEY), frames.text(idempotency_key))
    whole = b"".join(fields)
    if len(whole) > frames.CARRIED_MAX:
        raise Refused("Invalid", {"field": "context", "message": "what the call carries is over 16 KiB; carry less"})
    return frames.block(whole)


def with_seat(carried: bytes, seat: Seat | None, turn: Turn | None) -> bytes:
    """Adds the seat to what a call carries that no turn makes: while a hook of the seat runs, the call is part of what waits for the hook."""
    if turn is not None or seat is None:
        return carried
    whole = frames.Reader(carried).block() + frames.varint(frames.CALLING_SEAT) + frames.block(frames.varint(seat.number))
    return frames.block(whole) if len(whole) <= frames.CARRIED_MAX else carried


def _pack(name: str, method: Method | None, args: tuple[Any, ...], named: dict[str, Any]) -> bytes:
    if method is not None:
        return method.pack(args, named)
    if args:
        raise TypeError(f"{name}() of a kind that is known by its name takes arguments by name only")
    return frames.packed(named)


def _read(read: Callable[[bytes], Any], payload: bytes) -> Any:
    try:
        return read(payload)
    except Exception as error:
        raise errors.unreadable(error) from error


def _stream_name(value: Any) -> str | None:
    return cast("dict[str, str]", value).get("greenroom:stream") if isinstance(value, dict) else None


SECONDS_MAX = 1e9
"""What bounds a call for longer than this bounds it so."""
