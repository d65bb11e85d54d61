"""The frames of the host protocol, version 1: bytes in, fields out. No socket, no clock.

A frame is `length u32 LE` (of what follows), `type u8`, body. Numbers are LEB128 in their shortest form.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Final

import msgspec

MAGIC: Final = b"GRHP"
VERSION: Final = 1
FRAME_MAX: Final = 8 << 20
HELLO_MAX: Final = 64 << 10

HELLO, DESCRIBE, OFFERED, ALIVE, LEASE, NODES, DRAIN, GOODBYE, LANE_LOST, LANE_DROPPED = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
WELCOME: Final = 1
JOIN: Final = 16
ACTIVATE, ACTIVATED, DEACTIVATE, RELEASED, TURN, TURN_END, CANCEL_TURN = 32, 33, 34, 35, 36, 37, 38
DEFINE, CALL, REPLY, CANCEL_CALL, ASK, OPERATION_REFUSED = 39, 40, 41, 42, 43, 44
STREAM_ITEM, STREAM_CREDIT, STREAM_END, CREDIT = 48, 49, 50, 56

# How a call or a turn went.
OK, ACTOR_ERROR, REFUSED, UNKNOWN, CYCLE, PANICKED, INVALID, EXPIRED, ABANDONED = 0, 1, 2, 3, 4, 5, 6, 7, 16

# What an Ask asks for.
SAVE, RELOAD, CLEAR, TIMER, CANCEL_TIMER, REMIND, CANCEL_REMINDER, LIST_REMINDERS, SUBSCRIBE = 1, 2, 3, 4, 5, 6, 7, 8, 9
UNSUBSCRIBE, OPEN_STREAM, KEEP_ALIVE, DEACTIVATE_ME, MIGRATE, OUTPUT, CREATE, CHOSEN = 10, 11, 12, 13, 14, 15, 16, 17

# What a message carries along, by its tags.
CONTEXT, PRINCIPAL, IDEMPOTENCY_KEY, CALLING_SEAT = 1, 7, 14, 15
CARRIED_MAX = 16 << 10
NAME_MAX = 128

MESSAGE_PACK, JSON = 1, 2
"""The codecs of payloads."""

CHOICE: Final = os.environ.get("GREENROOM_CODEC", "")
CODECS: Final = {"": [MESSAGE_PACK, JSON], "messagepack": [MESSAGE_PACK], "json": [JSON]}.get(CHOICE, [])
"""What this process reads. The node writes over what is in another one."""

CODEC: Final = JSON if CHOICE == "json" else MESSAGE_PACK
"""What this process writes, but for replies: these are in the codec of their arguments."""

NIL: Final = b"\x02\x01null" if CODEC == JSON else b"\x01\x01\xc0"
"""The payload of nothing."""


class FrameError(Exception):
    """Bytes of the other side that are no frame: the lane that they came on is closed."""


_SHORT: Final = [bytes((value,)) for value in range(0x80)]


def varint(value: int) -> bytes:
    """`value` as LEB128."""
    if 0 <= value < 0x80:
        return _SHORT[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def text(value: str) -> bytes:
    """`value` after its length."""
    encoded = value.encode()
    return varint(len(encoded)) + encoded


def name(value: str, what: str) -> str:
    """`value`, if it may name `what`: the node ends a lane on which it comes by another one."""
    if is_text(value) and 0 < len(value.encode()) <= NAME_MAX:
        return value
    raise ValueError(f"{what} {value[:80]!r} is no name: give 1 to {NAME_MAX} bytes of UTF-8")


def is_text(value: object) -> bool:
    """Whether `value` is a text and has a form in UTF-8: one half of a surrogate pair has none."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def block(value: bytes) -> bytes:
    """`value` after its length."""
    return varint(len(value)) + value


def frame(kind: int, *parts: bytes) -> bytes:
    """A whole frame."""
    body = b"".join(parts)
    return (len(body) + 1).to_bytes(4, "little") + bytes((kind,)) + body


def bare_map(value: Any) -> bytes:
    """A map as Hello, Welcome, Nodes and Join have it."""
    return msgspec.msgpack.encode(value)


def packed(value: Any) -> bytes:
    """The payload of a value without a type."""
    module = msgspec.json if CODEC == JSON else msgspec.msgpack
    return bytes((CODEC, 1)) + module.encode(value)


def fields(states: dict[str, bytes]) -> bytes:
    """Whole states, each a payload."""
    parts = [varint(len(states))]
    for name, payload in states.items():
        parts += (_headed(name), varint(len(payload)), payload)
    return b"".join(parts)


@functools.lru_cache(maxsize=1024)
def _headed(name: str) -> bytes:
    return text(name) + b"\0"


class Reader:
    """Takes the fields of one frame's body in order."""

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self.data = data
        self.at = at
        self.end = len(data) if end is None else end

    def u8(self) -> int:
        if self.at >= self.end:
            raise FrameError("a frame ends within a field")
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.u8()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 63:
                raise FrameError("a number has more than 64 bits")
        if (byte == 0 and shift > 0) or value >> 64:
            raise FrameError("a number is not in its shortest form, or over 64 bits")
        return value

    def number(self, size: int) -> int:
        return int.from_bytes(self.bytes(size), "little")

    def bytes(self, size: int) -> bytes:
        end = self.at + size
        if end > self.end:
            raise FrameError("a frame ends within a field")
        found = self.data[self.at : end]
        self.at = end
        return found

    def block(self) -> bytes:
        return self.bytes(self.varint())

    def text(self) -> str:
        try:
            return self.block().decode()
        except UnicodeDecodeError as error:
            raise FrameError("a text is not UTF-8") from error

    def rest(self) -> bytes:
        found = self.data[self.at : self.end]
        self.at = self.end
        return found

    def fields(self) -> dict[str, bytes]:
        """The payloads of whole states, by name."""
        found: dict[str, bytes] = {}
        for _ in range(self.varint()):
            name = self.text()
            if self.u8() != 0:
                raise FrameError(f"state {name!r} comes in entries, which this SDK did not offer to read")
            found[name] = self.block()
        return found


class Splitter:
    """Cuts what comes off a socket into frames."""

    __slots__ = ("limit", "need", "rest")

    def __init__(self, limit: int = HELLO_MAX) -> None:
        self.limit = limit
        self.rest = bytearray()
        self.need = 5

    def feed(self, data: bytes) -> bytes:
        """What is there of whole frames, or nothing before the first one is whole."""
        if not self.rest:
            return data
        self.rest += data
        if len(self.rest) < self.need:
            return b""
        whole = bytes(self.rest)
        self.rest.clear()
        return whole

    def keep(self, data: bytes, at: int) -> None:
        """Keeps the beginning of a frame that is not whole."""
        self.rest += data[at:]
        self.need = self.length(data, at) if len(data) - at >= 4 else 5

    def length(self, data: bytes, at: int) -> int:
        """The length of the frame that begins there, its length field included."""
        length = int.from_bytes(data[at : at + 4], "little")
        if not 0 < length <= self.limit:
            raise FrameError(f"a frame of {length} bytes is outside the bound of {self.limit}")
        return length + 4

    def frames(self, data: bytes) -> list[tuple[int, Reader]]:
        """The whole frames of `data`, and of what was kept before it."""
        data = self.feed(data)
        found: list[tuple[int, Reader]] = []
        at, size = 0, len(data)
        while size - at >= 5:
            end = at + self.length(data, at)
            if end > size:
                break
            found.append((data[at + 4], Reader(data, at + 5, end)))
            at = end
        if at < size:
            self.keep(data, at)
        return found
