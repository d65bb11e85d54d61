"""References: calls of actors, with the class's own signatures."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from typing import Any, Protocol, cast

import msgspec

from . import errors, frames
from .actor import Actor, kind_of
from .errors import Refused, Unknown
from .kind import Kind, Method
from .lane import Lane, call_frame
from .streams import WINDOW, Inlet
from .turn import Seat, Turn


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


class Target:
    """What a reference is to, and how it is called."""

    __slots__ = ("by", "caller", "carried", "key", "kind", "module", "name", "sized", "version")

    def __init__(self, caller: Caller, kind: type[Actor] | str, key: str, by: float | None, carried: bytes) -> None:
        if not 0 < len(key.encode()) <= 1024:
            raise Refused("InvalidKey", {"message": "a key has 1 to 1,024 bytes"})
        self.caller = caller
        self.kind: Kind | None = None if isinstance(kind, str) else kind_of(kind)
        self.name = kind if isinstance(kind, str) else kind_of(kind).name
        self.module = self.kind.module if self.kind else ""
        self.version = self.kind.options.version if self.kind else 0
        self.key = key
        self.sized = frames.text(key)
        self.by = by
        self.carried = carried

    def method(self, name: str) -> Method | None:
        if self.kind is None:
            return None
        if name not in self.kind.by_name:
            raise AttributeError(f"{self.kind.cls.__name__} has no method {name!r} that callers have")
        return self.kind.by_name[name]

    async def call(self, name: str, method: Method | None, payload: bytes) -> Any:
        reply, lane = await self._ask(name, payload)
        try:
            if method is not None:
                return method.reply.read(reply)
            value = errors.value_of(reply)
        except (msgspec.DecodeError, frames.FrameError) as error:
            raise Unknown("Unreadable", {"message": str(error)}) from error
        stream = _stream_name(value)
        return value if stream is None else self._items(lane, stream, None)

    async def stream(self, name: str, method: Method, payload: bytes) -> AsyncIterator[Any]:
        reply, lane = await self._ask(name, payload)
        stream = _stream_name(errors.value_of(reply))
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
        lane.pay(call_frame(0, turn, lane.route(self.name, name, self.version), self.sized, left, self.carried, payload))

    async def _ask(self, name: str, payload: bytes) -> tuple[bytes, Lane]:
        until = time.monotonic() + self.by if self.by is not None else 0.0
        lane = self.caller.lane_now(self.name, self.key) or await self.caller.lane(self.name, self.key)
        seat, turn = self.caller.scope()

        def make(number: int) -> bytes:
            left = max(1, int((until - time.monotonic()) * 1e6)) if until else 0
            return call_frame(number, turn, lane.route(self.name, name, self.version), self.sized, left, self.carried, payload)

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
                yield method.reply.read(payload) if method else errors.value_of(payload)
        finally:
            inlet.close()


class Sent:
    """A one-way message: it goes at once if there is room. Awaited, it waits for room; nobody hears what becomes of it."""

    __slots__ = ("_rest",)

    def __init__(self, target: Target, name: str, payload: bytes) -> None:
        lane = target.caller.lane_now(target.name, target.key)
        self._rest: Any = None
        if lane is not None and lane.has_room:
            target.send(lane, name, payload)
        else:
            rest = _send_later(target, name, payload)
            self._rest = lane.loop.create_task(rest) if lane is not None else rest
            _, turn = target.caller.scope()
            if turn is not None and turn.seat.kind.options.reliable:
                turn.owed.append(self._rest)

    def __await__(self) -> Generator[Any, None, None]:
        if self._rest is not None:
            yield from self._rest.__await__()


async def _send_later(target: Target, name: str, payload: bytes) -> None:
    lane = await target.caller.lane(target.name, target.key)
    if not lane.has_room:
        await lane.room()
    target.send(lane, name, payload)


def carried(context: Mapping[str, str] | None, idempotency_key: str | None = None) -> bytes:
    """What calls carry along, as it is in a Call."""
    if context is None and idempotency_key is None:
        return b"\0"
    fields: list[bytes] = []
    if context:
        pairs = b"".join(frames.text(key) + frames.text(value) for key, value in context.items())
        fields += (frames.varint(frames.CONTEXT), frames.block(pairs))
    if idempotency_key is not None:
        fields += (frames.varint(frames.IDEMPOTENCY_KEY), frames.text(idempotency_key))
    whole = b"".join(fields)
    if len(whole) > frames.CARRIED_MAX:
        raise Refused("Invalid", {"field": "context", "message": "what the call carries is over 16 KiB; carry less"})
    return frames.block(whole)


def _pack(name: str, method: Method | None, args: tuple[Any, ...], named: dict[str, Any]) -> bytes:
    if method is not None:
        return method.pack(args, named)
    if args:
        raise TypeError(f"{name}() of a kind that is known by its name takes arguments by name only")
    return frames.packed(named)


def _stream_name(value: Any) -> str | None:
    return cast("dict[str, str]", value).get("greenroom:stream") if isinstance(value, dict) else None
