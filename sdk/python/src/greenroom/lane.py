"""A user lane: the turns, calls and streams of one shard, a batch a round."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import errors, frames
from .actor import bind
from .connection import Connection
from .context import Cx
from .errors import Refused, Unknown
from .frames import FrameError, Reader, frame, text, varint
from .streams import Inlet, Outlet
from .turn import Seat, Turn, outcome
from .ways import NotLetIn

if TYPE_CHECKING:
    from .session import Session

log = logging.getLogger("greenroom")


class Lane(Connection):
    """A connection to one shard of a node, and what is done for it here. All of it runs on the loop."""

    def __init__(self, session: Session, shard: int) -> None:
        super().__init__(session, shard)
        self.seats: dict[int, Seat] = {}
        self.turns: dict[int, Turn] = {}
        self.inlets: dict[int, Inlet] = {}
        self.outlets: dict[int, Outlet] = {}
        self.goodbye = ""
        self.closed: asyncio.Future[None] = self.loop.create_future()
        self._splitter = frames.Splitter(session.frame_max)
        self._answer = session.way.answer()
        self._cold: dict[int, Callable[[Reader], None]] = {
            frames.ACTIVATE: self._on_activate, frames.DEACTIVATE: self._on_deactivate, frames.CREDIT: self._on_credit,
            frames.CANCEL_TURN: self._on_cancel_turn, frames.STREAM_ITEM: self._on_item, frames.GOODBYE: self._on_goodbye,
            frames.STREAM_CREDIT: self._on_stream_credit, frames.STREAM_END: self._on_stream_end,
            frames.REPLY: self._on_reply, frames.OPERATION_REFUSED: self._on_operation_refused,
        }  # fmt: skip

    # The connection.

    def data_received(self, data: bytes) -> None:
        if self.dead:
            return
        self._batching = True
        try:
            if self._answer is not None:
                rest = self._answer(data)
                if rest is None:
                    return
                self._answer, data = None, rest
            self._round(data)
        except (FrameError, NotLetIn) as error:
            log.error("lane %s: %s", self.shard, error)
            self.write(frame(frames.GOODBYE, b"\x04", text(str(error)[:1000])))
            self.close()
        finally:
            self._batching = False
            self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self.drop()
        if not self.closed.done():
            self.closed.set_result(None)

    def drop(self) -> None:
        """Abandons what runs, and drops all seats: nothing that was here acts any more."""
        if self.dead:
            return
        self.dead = True
        for turn in self.turns.values():
            turn.abandon()
        for outlet in list(self.outlets.values()):
            outlet.stop()
        for seat in self.seats.values():
            seat.dead = True
        self.turns.clear()
        self.seats.clear()
        lost = Unknown("Disconnected", {"node": self.session.node_name})
        for request in self.requests.values():
            if not request.done():
                request.set_exception(lost)
                request.exception()
        self.requests.clear()
        for inlet in list(self.inlets.values()):
            inlet.end(lost)
        self.inlets.clear()
        for waiter in self._blocked:
            if not waiter.done():
                waiter.set_result(None)
        self._blocked.clear()

    # What comes.

    def _round(self, data: bytes) -> None:
        splitter = self._splitter
        data = splitter.feed(data)
        at, size = 0, len(data)
        while size - at >= 5:
            length = data[at] | data[at + 1] << 8 | data[at + 2] << 16 | data[at + 3] << 24
            end = at + 4 + length
            if end > size:
                break
            if not 0 < length <= splitter.limit:
                raise FrameError(f"a frame of {length} bytes is outside the bound of {splitter.limit}")
            kind = data[at + 4]
            if kind == frames.TURN:
                self._on_turn(data, at + 5, end)
            elif kind in self._cold:
                self._cold[kind](Reader(data, at + 5, end))
            if self.dead:
                return
            at = end
        if at < size:
            splitter.keep(data, at)

    def _seat(self, number: int) -> Seat:
        seat = self.seats.get(number)
        if seat is None:
            raise FrameError(f"a frame names seat {number}, which is not there")
        return seat

    def _on_turn(self, data: bytes, at: int, end: int) -> None:
        # By hand: most of a host's frames are turns.
        try:
            number, at = (data[at], at + 1) if data[at] < 0x80 else _number(data, at)
            seat_number, at = (data[at], at + 1) if data[at] < 0x80 else _number(data, at)
            method_number, at = (data[at], at + 1) if data[at] < 0x80 else _number(data, at)
            flags = data[at]
            left, at = (data[at + 1], at + 2) if data[at + 1] < 0x80 else _number(data, at + 1)
            length, at = (data[at], at + 1) if data[at] < 0x80 else _number(data, at)
        except IndexError:
            at, length = end, 1
            number = seat_number = method_number = flags = left = 0
        start = at + length
        if start > end:
            raise FrameError("a turn ends within a field")
        seat = self._seat(seat_number)
        methods = seat.kind.methods
        if method_number >= len(methods) or seat.instance is None or number in self.turns:
            raise FrameError(f"turn {number} names what is not there, or has begun")
        if self.session.is_over():
            # Nothing begins any more.
            self.session.lose("its lease is over")
            return
        method = methods[method_number]
        turn = Turn(self, seat, number, method, bool(flags & 1), left)
        turn.extension = data[at:start] if length else b""
        self.turns[number] = turn
        codec = turn.codec = data[start] if end - start > 1 else 0
        if codec == frames.JSON:
            turn.told = data[start + 1] == 2
        try:
            if codec == frames.MESSAGE_PACK:
                arguments = method.arguments.from_pack.decode(data[start + 2 : end])
            else:
                arguments = method.arguments.read(data[start:end])
        except Exception as error:  # Codecs have several types for it, and a user's own types raise what they like.
            turn.codec = codec or frames.MESSAGE_PACK
            refused = errors.invalid(error)
            if flags & 5 != 1:
                # Nobody else hears of a tick or a one-way message.
                why = refused.detail["message"]
                log.error("%s/%s.%s has not run, as its arguments do not fit: %s", seat.kind.name, seat.key, method.name, why)
            self.finish(turn, frames.INVALID, errors.encode(refused)[1])
            return
        found = method.take(arguments)
        count = len(method.names)
        function = method.function
        if not method.read:
            seat.exclusive = turn
        made = (
            function(seat.instance) if count == 0
            else function(seat.instance, found) if count == 1
            else function(seat.instance, *found)
        )  # fmt: skip
        if method.stream:
            outlet = Outlet(self, seat, self.number(), made, method, turn)
            self.outlets[outlet.number] = outlet
            seat.streams.add(outlet.number)
            self.finish(turn, frames.OK, frames.NIL, 8, varint(outlet.number))
        else:
            turn.begin(made)

    def end_turn(self, turn: Turn, value: Any) -> None:
        """The turn's handler has returned."""
        if turn.dead:
            return
        try:
            payload = turn.method.reply.write(value, turn.codec)
        except Exception as error:
            self.fail_turn(turn, Unknown("Unreadable", {"message": f"the reply cannot be encoded: {errors.words_of(error)}"}))
            return
        self._end(turn, frames.OK, payload)

    def fail_turn(self, turn: Turn, error: BaseException) -> None:
        """The turn's handler has raised."""
        if turn.dead:
            return
        status, payload = outcome(turn, error)
        if status == frames.ACTOR_ERROR:
            self._end(turn, status, payload)
            return
        seat = turn.seat
        options = seat.kind.options
        restart = options.persistent or options.reliable or options.on_error == "restart"
        if restart and not turn.method.read:
            try:
                seat.renew(self.bind)
            except Exception:
                log.exception("%s/%s cannot be made anew", seat.kind.name, seat.key)
        self.finish(turn, status, payload)

    def _end(self, turn: Turn, status: int, payload: bytes) -> None:
        if not turn.owed:
            self._settle(turn, status, payload)
            return

        async def behind() -> None:
            await asyncio.wait([sent.rest for sent in turn.owed])
            lost = next((sent.lost for sent in turn.owed if sent.lost is not None), None)
            if turn.dead:
                return
            if lost is not None:
                self.fail_turn(turn, lost)
            else:
                self._settle(turn, status, payload)

        turn.task = self.loop.create_task(behind())

    def _settle(self, turn: Turn, status: int, payload: bytes) -> None:
        seat = turn.seat
        if seat.kind.options.reliable and not turn.method.read:
            self._commit(turn, status, payload)
            return
        if turn.method.read or seat.kind.options.save == "explicit":
            self.finish(turn, status, payload)
            return
        try:
            changed = seat.changed()
        except Exception as error:
            self.fail_turn(turn, Unknown("Unsaved", {"message": f"its state cannot be encoded: {errors.words_of(error)}"}))
            return
        if changed is None:
            self.finish(turn, status, payload)
        else:
            # Reply and state are one frame: neither comes without the other.
            seat.saved = changed
            self.finish(turn, status, payload, 1, frames.fields({"self": changed}))

    def _commit(self, turn: Turn, status: int, payload: bytes) -> None:
        """Ends a turn of a reliable actor with all that it has changed: the node commits that with what it has sent."""
        try:
            changed = turn.seat.changes()
        except Exception as error:
            self.fail_turn(turn, Unknown("Unsaved", {"message": f"its state cannot be encoded: {errors.words_of(error)}"}))
            return
        seat, jump = turn.seat, turn.jump
        flags = (1 if changed else 0) | (2 if jump else 0) | (4 if turn.halts else 0)
        if jump:
            seat.state = jump
        if turn.halts:
            seat.journaled.clear()
            seat.state = seat.kind.options.start
        parts = frames.fields(changed) if changed else b""
        self.finish(turn, status, payload, flags, parts + text(jump) if jump else parts)

    def finish(self, turn: Turn, status: int, payload: bytes, flags: int = 0, parts: bytes = b"") -> None:
        """Says how a turn ended. A frame that is too long is not sent: its caller is told."""
        del self.turns[turn.number]
        if turn.seat.exclusive is turn:
            turn.seat.end_exclusive()
        number = turn.number
        head = bytes((37, number)) if number < 0x80 else b"\x25" + varint(number)
        size = len(head) + 2 + len(parts) + len(payload)
        if size > self.session.frame_max:
            words = f"the reply has {size} bytes, over the bound of {self.session.frame_max}"
            status, payload = errors.encode(Unknown("Unreadable", {"message": words}))
            flags, parts = 0, b""
            size = len(head) + 2 + len(payload)
        self.write(size.to_bytes(4, "little") + head + bytes((status, flags)) + parts + payload)

    def fitting(self, status: int, payload: bytes, what: str) -> tuple[int, bytes]:
        """The same, if a frame has room for it; else that it has not, which costs nobody the lane."""
        size = len(payload) + HEAD_MAX
        if size <= self.session.frame_max:
            return status, payload
        words = f"{what} has {size} bytes, over the bound of {self.session.frame_max}; let it be smaller"
        return errors.encode(Unknown("Unreadable", {"message": words}))

    def bind(self, instance: Any, seat: Seat) -> None:
        bind(instance, Cx(seat))

    def _on_activate(self, reader: Reader) -> None:
        number, offer, epoch, flags = reader.varint(), reader.varint(), reader.varint(), reader.u8()
        key = reader.text()
        state = reader.text() if flags & 1 else None
        if flags & ~3 or number in self.seats or offer >= len(self.session.kinds):
            raise FrameError(f"Activate of seat {number} names what is not there")
        carried = reader.block() if flags & 2 else None
        states = reader.fields()
        seat = self.seats[number] = Seat(self, number, self.session.kinds[offer], key, epoch)
        seat.state = state or seat.state
        task = self.loop.create_task(self._make(seat, carried, states))
        task.add_done_callback(lambda task: None if task.cancelled() else task.exception())

    async def _make(self, seat: Seat, carried: bytes | None, states: dict[str, bytes]) -> None:
        try:
            if seat.kind.options.reliable:
                seat.journaled = states
            else:
                seat.saved = states.get("self")
            seat.renew(self.bind)
            if carried is not None and seat.kind.state is not None:
                seat.kind.load(seat.instance, carried)
            instance, seat.instance = seat.instance, None
            await _hook(instance.activated())
            seat.instance = instance
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # A hook may await what is cancelled: who waits for the seat hears of that, too.
            if not seat.dead:
                log.error("%s/%s cannot be activated", seat.kind.name, seat.key, exc_info=error)
                self.seats.pop(seat.number, None)
                status, payload = errors.encode(Refused("Activation", {"message": errors.words_of(error)}))
                self.write(frame(frames.ACTIVATED, varint(seat.number), bytes((status,)), payload))
        else:
            if not seat.dead:
                self.write(frame(frames.ACTIVATED, varint(seat.number), b"\0", frames.NIL))

    def _on_deactivate(self, reader: Reader) -> None:
        seat, why, flags = self._seat(reader.varint()), reader.u8(), reader.u8()
        if flags & 2:
            for turn in [turn for turn in self.turns.values() if turn.seat is seat]:
                del self.turns[turn.number]
                turn.abandon()
        for number in list(seat.streams):
            self.outlets[number].stop()
        self.loop.create_task(self._release(seat, WHY[why] if why < len(WHY) else "other", bool(flags & 1)))

    async def _release(self, seat: Seat, why: str, carry: bool) -> None:
        status, carried = frames.OK, b""
        if seat.instance is not None:
            try:
                await _hook(seat.instance.deactivating(why))
                if carry and seat.kind.state is not None:
                    carried = seat.kind.dump(seat.instance)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:
                log.exception("%s/%s: deactivating failed", seat.kind.name, seat.key)
                status, carried = errors.encode(Unknown("Panicked", {"message": errors.words_of(error)}))
        if not seat.dead:
            seat.dead = True
            self.seats.pop(seat.number, None)
            status, carried = self.fitting(status, carried, f"what {seat.kind.name}/{seat.key} carries")
            self.write(frame(frames.RELEASED, varint(seat.number), bytes((status,)), carried))

    def _on_cancel_turn(self, reader: Reader) -> None:
        turn = self.turns.get(reader.varint())
        if turn is not None:
            turn.cancelled = True

    def _on_item(self, reader: Reader) -> None:
        number = reader.varint()
        inlet = self.inlets.get(number)
        if inlet is not None:
            inlet.item(reader.varint(), reader.rest())

    def _on_stream_end(self, reader: Reader) -> None:
        inlet = self.inlets.pop(reader.varint(), None)
        if inlet is not None:
            count, status = reader.varint(), reader.u8()
            inlet.finish(count, status, reader.rest())

    def _on_stream_credit(self, reader: Reader) -> None:
        outlet = self.outlets.get(reader.varint())
        if outlet is not None:
            outlet.credit(reader.varint(), reader.varint())

    def _on_operation_refused(self, reader: Reader) -> None:
        reader.varint()
        actor, operation, reason = reader.text(), reader.text(), reader.text()
        log.error("the node refuses %s of %s: %s", operation, actor or "this host", reason)

    def _on_goodbye(self, reader: Reader) -> None:
        code, self.goodbye = reader.u8(), reader.text() or "goodbye"
        # What is done, or a node that stops, is no error.
        log.log(logging.INFO if code < 2 else logging.ERROR, "the node ends lane %s: %s", self.shard, self.goodbye)
        self.close()


async def _hook(made: Any) -> None:
    """Ends a hook, which need not be a coroutine."""
    if inspect.isawaitable(made):
        await made


def call_frame(number: int, turn: Turn | None, route: bytes, key: bytes, left: int, carried: bytes, payload: bytes) -> bytes:
    """A Call."""
    head = b"\x28" + varint(number) + (varint(turn.number) if turn is not None else b"\0") + route
    body = b"".join((head, key, varint(left), carried, payload))
    return len(body).to_bytes(4, "little") + body


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A varint of several bytes, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise FrameError("a number has more than 64 bits")


HEAD_MAX = 32
"""Bytes of a frame before its payload, at most, where these are numbers alone."""

WHY = ("idle", "stopping", "asked", "failed", "migrating", "superseded", "upgraded", "unsaved", "duplicate", "stopped")
"""Why a seat is left, by its byte."""
