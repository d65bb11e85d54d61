"""What an activation may ask of its node."""

from __future__ import annotations

import asyncio
import time
import uuid
from asyncio import Future
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast, overload

import msgspec

from . import errors, frames
from .frames import Reader
from .kind import Coder, Method
from .turn import Seat, Turn, current

if TYPE_CHECKING:
    from .actor import Actor
    from .lane import Lane

A = TypeVar("A", bound="Actor")
P = ParamSpec("P")
T = TypeVar("T")


class Referrer:
    """Makes references and topics: an activation's `cx`, or a client."""

    def scope(self) -> tuple[Seat | None, Turn | None]:
        return None, None

    def lane_now(self, kind: str, key: str) -> Lane | None:
        raise NotImplementedError

    async def lane(self, kind: str, key: str) -> Lane:
        raise NotImplementedError

    def begin(self, message: Coroutine[Any, Any, None]) -> Future[None]:
        """Begins to send a one-way message, whether it is awaited or not."""
        return asyncio.get_running_loop().create_task(message)

    @overload
    def ref(
        self, kind: type[A], key: str, *, by: float | None = None, idempotency_key: str | None = None, context: Mapping[str, str] | None = None
    ) -> A: ...
    @overload
    def ref(
        self, kind: str, key: str, *, by: float | None = None, idempotency_key: str | None = None, context: Mapping[str, str] | None = None
    ) -> Any: ...
    def ref(
        self, kind: Any, key: str, *, by: float | None = None, idempotency_key: str | None = None, context: Mapping[str, str] | None = None
    ) -> Any:
        """The actor of a kind and key. `by` bounds each call, in seconds; a turn's own limit holds in any case.

        Calls carry `context` in their request context, and so do all that are made on their behalf. Among all calls of a reliable actor
        with one `idempotency_key` one runs, and the others get the answer that was recorded; other actors refuse it.
        """
        from .refs import Ref, carried

        return Ref(self, kind, key, by, carried(context, idempotency_key))

    @overload
    def send(self, kind: type[A], key: str, *, context: Mapping[str, str] | None = None) -> A: ...
    @overload
    def send(self, kind: str, key: str, *, context: Mapping[str, str] | None = None) -> Any: ...
    def send(self, kind: Any, key: str, *, context: Mapping[str, str] | None = None) -> Any:
        """The same, for one-way messages: a method sends, and awaiting what it gives waits for a lane and for room on it, no longer.

        A message goes whether it is awaited or not. One that cannot be sent raises where it is awaited, and is logged where it is not.
        """
        from .refs import Ref, carried

        return Ref(self, kind, key, None, carried(context), one_way=True)

    def topic(self, name: str, of: type[T]) -> Topic[T]:
        """A topic, and the type of its events."""
        return Topic(self, name, of)


class Cx(Referrer):
    """What an activation may ask of its node, in the name of the turn whose code asks."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat

    @property
    def kind(self) -> str:
        """The actor's kind."""
        return self._seat.kind.name

    @property
    def key(self) -> str:
        """The actor's key."""
        return self._seat.key

    @property
    def epoch(self) -> int:
        """The activation's number among the actor's: it only rises."""
        return self._seat.epoch

    @property
    def fence(self) -> tuple[int, int]:
        """What only rises: to be sent along to what is outside of the cluster, which then can refuse what is older."""
        turn = self._turn()
        return self._seat.epoch, turn.number if turn else 0

    @property
    def is_cancelled(self) -> bool:
        """Whether the turn's caller has given up, its time is over, or its host may no longer act."""
        turn = self._turn()
        if self._seat.dead or turn is None:
            return self._seat.dead
        return turn.cancelled or (turn.until > 0 and turn.until <= time.monotonic())

    @property
    def left(self) -> float | None:
        """Seconds that are left of the turn's time; `None` if it has no limit."""
        turn = self._turn()
        return max(0.0, turn.until - time.monotonic()) if turn and turn.until else None

    @property
    def context(self) -> dict[str, str]:
        """The pairs of the request context that came with the turn's message."""
        pairs = self._extension(frames.CONTEXT)
        found: dict[str, str] = {}
        while pairs is not None and pairs.at < pairs.end:
            key = pairs.text()
            found[key] = pairs.text()
        return found

    @property
    def principal(self) -> str | None:
        """On whose behalf the turn is, if anybody's."""
        named = self._extension(frames.PRINCIPAL)
        return named.text() if named else None

    async def save(self) -> None:
        """Saves the actor's state: a conditional write. On return it is stored.

        Raises `Refused` or `Unknown` if it is not, or may not be; the activation ends with the turn then.
        """
        seat = self._seat
        if not seat.kind.options.persistent:
            raise RuntimeError(f"{seat.kind.cls.__name__} keeps nothing: write class {seat.kind.cls.__name__}(gr.Actor, persistent=True)")
        payload = seat.kind.dump(seat.instance)
        await self._ask(frames.SAVE, {"state": "self", "fields": frames.fields({"self": payload})})
        seat.saved = payload

    async def reload(self) -> None:
        """Reads the state again from the store, over what the instance has."""
        payload = await self._ask(frames.RELOAD, {"state": "self"})
        if len(payload) > 2 and payload != frames.NIL:
            self._seat.kind.load(self._seat.instance, payload)
            self._seat.saved = payload

    async def clear(self) -> None:
        """Removes the state from the store, and makes the instance a fresh one."""
        await self._ask(frames.CLEAR, {"state": "self"})
        self._seat.saved = None
        fresh = self._seat.kind.fresh()
        for name in self._seat.kind.state_fields:
            setattr(self._seat.instance, name, getattr(fresh, name))

    def after(self, seconds: float, method: Callable[P, Any], *args: P.args, **named: P.kwargs) -> Timer:
        """Calls a method of this actor once, later: `self.cx.after(5, self.close)`. It ends with the activation."""
        return self._timer(seconds, None, method, args, named)

    def every(self, seconds: float, method: Callable[P, Any], *args: P.args, **named: P.kwargs) -> Timer:
        """Calls a method of this actor in each period, as long as the activation lasts. Ticks never pile up."""
        return self._timer(seconds, seconds, method, args, named)

    async def remind(
        self,
        method: Callable[..., Any],
        *args: Any,
        after: float | None = None,
        every: float | None = None,
        name: str | None = None,
    ) -> None:
        """Sets a reminder, which is kept in the store: `await self.cx.remind(self.dun, "kindly", after=3600)`.

        It calls the method although the actor sleeps or its node dies: at least once for each due time. One of the same
        name, by default the method's, is replaced.
        """
        found = self._method(method)
        first = after if after is not None else every
        if first is None:
            raise TypeError("a reminder needs `after` or `every`; it has no cron patterns here")
        if not first >= 0 or (every is not None and not every >= 0):
            raise ValueError(f"a reminder comes after so many seconds, at least one: {first if not first >= 0 else every} is no such time")
        what: dict[str, Any] = {"name": name or found.name, "method": found.name, "arguments": found.pack_tick(self.kind, args, {})}
        # By the node's clock; one of an older build reads the other.
        what["after_ms"], what["due_ms"] = round(first * 1000), round((time.time() + first) * 1000)
        if every is not None:
            what["every_ms"] = round(every * 1000)
        await self._ask(frames.REMIND, what)

    async def forget(self, name: str) -> None:
        """Cancels a reminder: once this returns, no turn of it begins."""
        await self._ask(frames.CANCEL_REMINDER, {"name": name})

    async def reminders(self) -> list[Any]:
        """The actor's reminders: of each its `name`, `method`, `due_ms` since 1970, and `every_ms` or `cron` if it comes again."""
        return cast("list[Any]", errors.value_of(await self._ask(frames.LIST_REMINDERS, {})))

    def output(self, outlet: str, value: Any) -> None:
        """Sends a value as JSON to an outlet of the nodes', with the commit of this reliable actor's turn: at least once."""
        self._reliable()
        self._tell(frames.OUTPUT, {"outlet": outlet, "message": bytes((frames.JSON, 1)) + msgspec.json.encode(value)})

    async def create(self, kind: type[Actor] | str) -> str:
        """Lets an actor of a reliable kind come into being with this turn's commit: its key, which was never used."""
        from .actor import kind_of

        self._reliable()
        name = kind if isinstance(kind, str) else kind_of(kind).name
        return cast("str", errors.value_of(await self._ask(frames.CREATE, {"kind": name})))

    async def choose(self, make: Callable[[], T]) -> T:
        """What `make` gives: chance, the time, whatever neither the message nor what is stored decides.

        Where a test's node runs reliable turns twice (`--rerun`), the second run gets what the first one got; anywhere else nobody is asked.
        """
        made, welcome = make(), self._seat.lane.session.welcome
        if not (welcome and welcome.rerun and self._seat.kind.options.reliable and self._turn()):
            return made
        coder = Coder(type(made))
        return cast("T", coder.read(await self._ask(frames.CHOSEN, {"value": coder.write(made)})))

    def halt(self) -> None:
        """Ends this reliable actor with its turn's commit: its state and what waits for it go."""
        self._reliable().halts = True

    def jump(self, state: str) -> None:
        """Takes this state machine to another of its states, with its turn's commit: what is deferred is looked at again.

        The turn fails if nothing names that state.
        """
        turn = self._reliable()
        if turn.method.read or self._seat.kind.options.start is None:
            raise RuntimeError(f"{self._seat.kind.cls.__name__}.{turn.method.name}: only exclusive turns of state machines jump")
        turn.jump = frames.name(state, f"{self._seat.kind.cls.__name__}.{turn.method.name}: the state")

    @property
    def machine_state(self) -> str | None:
        """The state that this state machine is in, in this turn to its end; `None` of what is none."""
        return self._seat.state

    def keep_alive(self, seconds: float) -> None:
        """Keeps the activation from ending of idleness for so long."""
        self._tell(frames.KEEP_ALIVE, {"for_ms": round(seconds * 1000)})

    async def migrate(self, node: str) -> None:
        """Lets the activation go to the node called `node` once the turns that it has begun are over. What waits for it follows.

        What it holds goes along if its class says `migrate=True`; one that is `persistent` is read from its store there. Raises
        `Refused` if it stays: there is no such node, nobody hosts the kind there, or the class says neither.
        """
        await self._ask(frames.MIGRATE, {"node": node})

    def deactivate(self) -> None:
        """Ends the activation after this turn."""
        self._tell(frames.DEACTIVATE_ME, {})

    # For the SDK.

    def scope(self) -> tuple[Seat | None, Turn | None]:
        return self._seat, self._turn()

    def lane_now(self, kind: str, key: str) -> Lane | None:
        return self._seat.lane

    async def lane(self, kind: str, key: str) -> Lane:
        return self._seat.lane

    def method(self, method: Callable[..., Any]) -> Method:
        """What is known of a method of this actor."""
        return self._method(method)

    def _reliable(self) -> Turn:
        turn = self._turn()
        if turn is None or not self._seat.kind.options.reliable:
            raise RuntimeError(f"{self._seat.kind.cls.__name__}: this is for turns of reliable actors")
        return turn

    def _turn(self) -> Turn | None:
        turn = current.get()
        return turn if turn is not None and turn.seat is self._seat else None

    def _extension(self, wanted: int) -> Reader | None:
        turn = self._turn()
        reader = Reader(turn.extension if turn else b"")
        while reader.at < reader.end:
            tag, size = reader.varint(), reader.varint()
            if tag == wanted:
                return Reader(reader.data, reader.at, reader.at + size)
            reader.at += size
        return None

    async def _ask(self, operation: int, what: dict[str, Any]) -> bytes:
        return await self._seat.lane.ask(self._turn(), self._seat, operation, what)

    def _tell(self, operation: int, what: dict[str, Any]) -> None:
        self._seat.lane.tell(self._turn(), self._seat, operation, what)

    def _timer(self, after: float, every: float | None, method: Callable[..., Any], args: Any, named: Any) -> Timer:
        found = self._method(method)
        # The timer of a reliable actor outlasts its lane, and is known by its name alone.
        name = uuid.uuid4().hex if self._seat.kind.options.reliable else str(self._seat.lane.number())
        timer = Timer(self, name)
        what: dict[str, Any] = {"name": timer.name, "method": found.name, "arguments": found.pack_tick(self.kind, args, named)}
        what["after_us"] = max(1, round(after * 1e6))
        if every is not None:
            what["every_us"] = max(1, round(every * 1e6))
        if not self._seat.kind.options.reliable:
            self._seat.timers.add(timer.name, None if every is not None else after)
        self._tell(frames.TIMER, what)
        return timer

    def _method(self, method: Callable[..., Any]) -> Method:
        name = getattr(method, "__name__", "")
        found = self._seat.kind.by_name.get(name)
        if found is None or not isinstance(getattr(method, "__self__", None), self._seat.kind.cls):
            raise TypeError(f"{method!r} is no method of this actor that callers have: write self.NAME")
        return found


@dataclass
class Timer:
    """A timer of an activation."""

    _cx: Cx
    name: str

    def cancel(self) -> None:
        """Ends it: no tick of it begins any more."""
        self._cx._seat.timers.discard(self.name)  # pyright: ignore[reportPrivateUsage]
        self._cx._tell(frames.CANCEL_TIMER, {"name": self.name})  # pyright: ignore[reportPrivateUsage]


class Topic(Generic[T]):
    """A topic: what is published to it comes to all who subscribe to it."""

    def __init__(self, referrer: Referrer, name: str, of: type[T]) -> None:
        self._referrer = referrer
        self._coder = Coder(of)
        self.name = name

    async def publish(self, event: T) -> None:
        """Publishes: on return, the queues of all subscribers have it."""
        await self._referrer.ref("topics", self.name).publish(event=self._text(event))

    def send(self, event: T) -> Awaitable[None]:
        """Publishes; nobody hears whether it was."""
        return self._referrer.send("topics", self.name).publish(event=self._text(event))

    async def subscribe(self, method: Callable[[T], Any]) -> None:
        """Has a method of this actor called for each event, its one argument, as long as the activation lasts.

        One event comes after the other, each until it is acknowledged. `activated` is the place for it.
        """
        cx = self._cx()
        found = cx.method(method)
        if not found.names:
            raise TypeError(f"{found.name}() has no argument for an event")
        what = {"topic": self.name, "method": found.name, "argument": found.names[0]}
        await cx._ask(frames.SUBSCRIBE, what)  # pyright: ignore[reportPrivateUsage]

    async def unsubscribe(self) -> None:
        """Ends this actor's subscription."""
        await self._cx()._ask(frames.UNSUBSCRIBE, {"topic": self.name})  # pyright: ignore[reportPrivateUsage]

    async def watch(self) -> AsyncIterator[T]:
        """The events from now on."""
        parcels = await self._referrer.ref("topics", self.name).subscribe(
            terms={"slow": "backpressure", "queue_len": 256, "from": None}
        )
        async for parcel in parcels:
            if isinstance(parcel, dict) and "Event" in parcel:
                _, event = cast("dict[str, tuple[Any, str]]", parcel)["Event"]
                yield msgspec.json.decode(event, type=self._coder.type)

    def _cx(self) -> Cx:
        if not isinstance(self._referrer, Cx):
            raise TypeError("only an actor subscribes; elsewhere use `watch`")
        return self._referrer

    def _text(self, event: T) -> str:
        return self._coder.write(event, frames.JSON)[2:].decode()
