"""Seats, and the turns that run at them."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any

import msgspec

from . import errors, frames
from .errors import ActorError, Failure, Fenced, Unknown
from .timers import Timers

if TYPE_CHECKING:
    from .kind import Kind, Method
    from .lane import Lane
    from .refs import Sent

log = logging.getLogger("greenroom")

current: contextvars.ContextVar[Turn | None] = contextvars.ContextVar("greenroom_turn", default=None)
"""The turn whose code runs."""


class Seat:
    """An activation's place in a session, and its instance."""

    __slots__ = (
        "dead", "epoch", "exclusive", "instance", "journaled", "key", "kind", "lane", "number", "saved", "state", "streams", "timers", "waiting",
    )  # fmt: skip

    def __init__(self, lane: Lane, number: int, kind: Kind, key: str, epoch: int) -> None:
        self.lane = lane
        self.number = number
        self.kind = kind
        self.key = key
        self.epoch = epoch
        self.instance: Any = None
        self.saved: bytes | None = None
        """The payload of the state as it is stored, as far as is known."""
        self.journaled: dict[str, bytes] = {}
        """The payloads of what a journal keeps, as the last turn has left them."""
        self.state = kind.options.start
        """The state that a state machine is in."""
        self.exclusive: Turn | None = None
        self.dead = False
        self.streams: set[int] = set()
        self.timers = Timers()
        self.waiting: deque[asyncio.Future[None]] = deque()
        """Streams whose next step waits for the end of an exclusive turn."""

    def renew(self, bind: Callable[[Any, Seat], None]) -> None:
        """Makes the instance anew from what is stored: a failed handler's half-changed memory is not saved by the next turn."""
        instance = self.kind.fresh()
        bind(instance, self)
        if self.saved is not None:
            self.kind.load(instance, self.saved)
        self.kind.load_fields(instance, self.journaled)
        self.instance = instance

    def changed(self) -> bytes | None:
        """The payload of the state, if it is not what is stored."""
        payload = self.kind.dump(self.instance)
        return None if payload == self.saved else payload

    def changes(self) -> dict[str, bytes]:
        """What a turn has changed of what a journal keeps; from now on it is kept."""
        instance, before = self.instance, self.journaled
        changed: dict[str, bytes] = {}
        for name, coder in self.kind.fields.items():
            payload = coder.write(getattr(instance, name))
            if before.get(name) != payload:
                changed[name] = payload
        # Not before all of them can be written.
        before |= changed
        return changed

    def end_exclusive(self) -> None:
        """Lets streams go on."""
        self.exclusive = None
        while self.waiting:
            waiter = self.waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)


class Turn:
    """The handling of one message at a seat.

    Its coroutine is stepped in place; only one that suspends gets a task. Until then this object stands for that task, so
    that `asyncio.timeout` and task groups work from the first step on.
    """

    __slots__ = (
        "awaited", "cancel_asked", "cancelled", "codec", "context", "dead", "extension", "halts", "jump", "lane", "method", "number",
        "owed", "seat", "task", "told", "until",
    )  # fmt: skip

    def __init__(self, lane: Lane, seat: Seat, number: int, method: Method, awaited: bool, left: int) -> None:
        self.lane = lane
        self.seat = seat
        self.number = number
        self.method = method
        self.awaited = awaited
        self.until = time.monotonic() + left / 1e6 if left else 0.0
        self.codec = frames.MESSAGE_PACK
        self.told = False
        self.extension = b""
        self.dead = False
        self.halts = False
        self.jump: str | None = None
        """The state of a state machine from this turn on, if it says one."""
        self.owed: list[Sent] = []
        """Messages of a reliable actor's turn that wait for room on the lane: it ends behind them, and fails if one is lost."""
        self.cancelled = False
        self.cancel_asked = False
        self.task: asyncio.Task[Any] | None = None
        self.context = contextvars.copy_context()

    def begin(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Runs the first step. A turn that has not ended with it goes on as a task."""
        try:
            waits = self.context.run(_first_step, self, coroutine)
        except StopIteration as end:
            self.lane.end_turn(self, end.value)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            self.lane.fail_turn(self, error)
        else:
            rest: Any = _rest(coroutine, waits)
            rest.send(None)
            self.task = self.lane.loop.create_task(rest, context=self.context)
            self.task.add_done_callback(self._done)
            if self.cancel_asked:
                self.task.cancel()

    def _done(self, task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            self.lane.fail_turn(self, asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            self.lane.fail_turn(self, error)
        else:
            self.lane.end_turn(self, task.result())

    def abandon(self) -> None:
        """Marks it dead: what it asks from now on fails with `Fenced`."""
        self.dead = True
        self.cancelled = True
        self.cancel()

    def cancel(self, msg: Any = None) -> bool:
        if self.task is None:
            self.cancel_asked = True
            return True
        return self.task.cancel(msg)

    def __getattr__(self, name: str) -> Any:
        # As a task: what asyncio asks of the current one after the first step.
        if self.task is None:
            return _STANDS_FOR[name]
        return getattr(self.task, name)


@types.coroutine
def _rest(coroutine: Coroutine[Any, Any, Any], waits: Any) -> Generator[Any, Any, Any]:
    """The rest of a coroutine whose first step waits for something."""
    cut: BaseException | None = None
    try:
        # `begin` comes so far: what is thrown into a task before it first runs would not reach the coroutine otherwise.
        yield
    except asyncio.CancelledError as error:
        cut = None if waits is not None and waits.cancel() else error
    while True:
        try:
            if cut is not None:
                raise cut
            yield waits
        except BaseException as error:
            cut = None
            try:
                waits = coroutine.throw(error)
            except StopIteration as end:
                return end.value
        else:
            return (yield from coroutine)  # pyright: ignore[reportGeneralTypeIssues, reportReturnType, reportUnknownVariableType]


def _first_step(turn: Turn, coroutine: Coroutine[Any, Any, Any]) -> Any:
    current.set(turn)
    stand_in: Any = turn
    asyncio._enter_task(turn.lane.loop, stand_in)  # pyright: ignore
    try:
        return coroutine.send(None)
    finally:
        asyncio._leave_task(turn.lane.loop, stand_in)  # pyright: ignore


def outcome(turn: Turn, error: BaseException) -> tuple[int, bytes]:
    """How a turn ended that raised: its status and payload."""
    if isinstance(error, ActorError):
        try:
            value = {"error": error.value, "says": str(error)} if turn.told else error.value
            head = bytes((turn.codec, 2 if turn.told else 1))
            module = msgspec.json if turn.codec == frames.JSON else msgspec.msgpack
            return frames.ACTOR_ERROR, head + module.encode(value)
        except Exception as why:  # Its fields are of the user's types: what these raise is theirs.
            words = errors.CYCLIC if isinstance(why, RecursionError) else errors.words_of(why)
            return errors.encode(Unknown("Unreadable", {"message": f"{type(error).__name__} cannot be written: {words}"}))
    if isinstance(error, Fenced) and not error.told:
        return frames.ABANDONED, frames.NIL
    if isinstance(error, Failure) and error.reason in ("Unsaved", "Unreadable"):
        try:
            return errors.encode(error)
        except Exception:
            pass  # The user's own, with a detail that cannot be written: as any other exception.
    log.error("%s/%s.%s failed", turn.seat.kind.name, turn.seat.key, turn.method.name, exc_info=error)
    return errors.encode(Unknown("Panicked", {"message": errors.words_of(error)}))


_STANDS_FOR: dict[str, Any] = {
    "cancelling": lambda: 0,
    "uncancel": lambda: 0,
    "done": lambda: False,
    "cancelled": lambda: False,
    "get_name": lambda: "greenroom-turn",
}
