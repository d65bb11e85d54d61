"""A node's side of the host protocol, scripted: it says what a test has it say, and shows what the host says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from greenroom import Actor, Host, frames
from greenroom.control import now
from greenroom.frames import Reader, block, frame, text, varint

SECRET = bytes(range(16))


class Peer:
    """Listens on a socket. `lease_ms` and `answers` (whether Alive is answered) can be changed while it runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"unix:{path}"
        self.lease_ms = 5000
        self.answers = True
        self.late = 0.0
        self.window = 1 << 20
        self.shards = [0]
        self.refuses = ""
        """Why its offers are refused, if they are."""
        self.waits: asyncio.Event | None = None
        """What it waits for before it answers a Hello."""
        self.welcome: dict[str, Any] = {}
        """What its Welcome says in other words than usual."""
        self.sessions = 0
        self.hellos: list[dict[str, Any]] = []
        self.described: list[dict[str, Any]] = []
        self.control: list[tuple[int, bytes]] = []
        self.said: asyncio.Queue[tuple[int, Reader]] = asyncio.Queue()
        """What came on user lanes."""
        self.joined = asyncio.Event()
        self.greeted = 0
        """By the lease's clock: when the last Hello came."""
        self.left = 0
        """Connections that the host has closed."""
        self.control_writer: asyncio.StreamWriter | None = None
        self.writer: asyncio.StreamWriter | None = None
        self._server: asyncio.Server | None = None
        self._numbers = 0

    async def listen(self) -> None:
        self._server = await asyncio.start_unix_server(self._accept, self.path)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in (self.control_writer, self.writer):
            if writer is not None:
                writer.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        splitter = frames.Splitter(frames.FRAME_MAX)
        first = True
        user = False
        while data := await self._read(reader):
            for kind, body in splitter.frames(data):
                if first and kind == frames.HELLO:
                    self.control_writer = writer
                    if self.waits is not None:
                        await self.waits.wait()
                    self._greet(writer, body)
                elif first:
                    assert kind == frames.JOIN and body.bytes(4) == frames.MAGIC and body.number(2) == 1
                    joined = msgspec.msgpack.decode(body.rest())
                    assert joined == {"session": self.sessions, "secret": SECRET, "shard": joined["shard"]}
                    self.writer, user = writer, True
                    self.joined.set()
                elif user:
                    self.said.put_nowait((kind, body))
                elif kind == frames.ALIVE:
                    asyncio.ensure_future(self._alive(writer, body.varint()))
                else:
                    self.control.append((kind, body.rest()))
                    if kind == frames.DESCRIBE:
                        self._described()
                first = False
        self.left += 1
        writer.close()
        if user and self.control_writer is not None:
            self.say_control(frame(frames.LANE_LOST, varint(0)))

    async def _read(self, reader: asyncio.StreamReader) -> bytes:
        try:
            return await reader.read(1 << 16)
        except ConnectionError:
            return b""

    def _greet(self, writer: asyncio.StreamWriter, body: Reader) -> None:
        assert body.bytes(8) == b"GRHP\x01\x00\x01\x00"
        self.greeted = now()
        hello = msgspec.msgpack.decode(body.rest())
        self.hellos.append(hello)
        self.sessions += 1
        welcome = {
            "cluster": "music", "node": 7, "session": self.sessions, "secret": SECRET, "lease_ms": self.lease_ms,
            "shards": self.shards, "window": self.window, "unknown": [offer["digest"] for offer in hello["offers"]],
        } | self.welcome  # fmt: skip
        writer.write(frame(frames.WELCOME, b"GRHP\x01\x00\x01\x00", frames.bare_map(welcome)))
        for index, offer in enumerate(hello["offers"]):
            writer.write(frame(frames.OFFERED, varint(index), text(offer["kind"]), b"\2" if self.refuses else b"\0", text(self.refuses)))

    def _described(self) -> None:
        reader = Reader(self.control[-1][1])
        reader.text()
        reader.varint()
        self.described.append(msgspec.json.decode(reader.rest()))

    async def _alive(self, writer: asyncio.StreamWriter, number: int) -> None:
        if self.late:
            await asyncio.sleep(self.late)
        if self.answers:
            writer.write(frame(frames.LEASE, varint(number), varint(self.lease_ms)))

    def say(self, data: bytes) -> None:
        """Sends on the user lane."""
        assert self.writer is not None
        self.writer.write(data)

    def say_control(self, data: bytes) -> None:
        assert self.control_writer is not None
        self.control_writer.write(data)

    async def hear(self, *wanted: int) -> tuple[int, Reader]:
        """The next frame of the user lane, which is one of those wanted; Define frames are passed over."""
        while True:
            kind, body = await asyncio.wait_for(self.said.get(), 10)
            if kind != frames.DEFINE or kind in wanted:
                assert kind in wanted, f"frame {kind} came, not one of {wanted}: {body.rest()!r}"
                return kind, body

    async def seat(self, seat: int = 1, key: str = "lobby", state: bytes | None = None, carried: bytes | None = None, epoch: int = 1) -> None:
        """Activates, and waits until it is."""
        self.activate(seat, key, state, carried, epoch)
        _, body = await self.hear(frames.ACTIVATED)
        assert (body.varint(), body.u8()) == (seat, frames.OK), body.rest()

    def activate(self, seat: int = 1, key: str = "lobby", state: bytes | None = None, carried: bytes | None = None, epoch: int = 1) -> None:
        states = frames.fields({"self": state} if state is not None else {})
        flags = b"\0" if carried is None else b"\2"
        carry = b"" if carried is None else block(carried)
        self.say(frame(frames.ACTIVATE, varint(seat), b"\0", varint(epoch), flags, text(key), carry, states))

    def turn(self, method: int, arguments: Any = None, seat: int = 1, left: int = 0, payload: bytes | None = None) -> int:
        """Sends a turn; its number."""
        self._numbers += 1
        packed = frames.packed(arguments or {}) if payload is None else payload
        self.say(frame(frames.TURN, varint(self._numbers), varint(seat), varint(method), b"\1", varint(left), b"\0", packed))
        return self._numbers

    async def end(self, turn: int | None = None) -> tuple[int, Any, bytes]:
        """The end of a turn: its status, its value, and the payload of the state that came with it."""
        _, body = await self.hear(frames.TURN_END)
        number, status, flags = body.varint(), body.u8(), body.u8()
        assert turn is None or number == turn
        (state,) = body.fields().values() if flags & 1 else (b"",)
        if flags & 8:
            return status, body.varint(), state
        payload = body.rest()
        value = msgspec.json.decode(payload[2:]) if payload[0] == 2 else msgspec.msgpack.decode(payload[2:])
        return status, value, state

    async def call(self, method: int, arguments: Any = None, seat: int = 1) -> tuple[int, Any, bytes]:
        return await self.end(self.turn(method, arguments, seat))

    async def called(self) -> tuple[int, int, str, Any]:
        """A call that the host makes: its request, its turn, its key and arguments."""
        _, body = await self.hear(frames.CALL)
        request, turn, _, key, _, _ = body.varint(), body.varint(), body.varint(), body.text(), body.varint(), body.block()
        return request, turn, key, msgspec.msgpack.decode(body.rest()[2:])

    def reply(self, request: int, value: Any = None, status: int = 0) -> None:
        self.say(frame(frames.REPLY, varint(request), bytes((status,)), frames.packed(value)))


@asynccontextmanager
async def hosting(peer: Peer, *kinds: type[Actor]) -> AsyncGenerator[Host]:
    """A host at a peer, with its lane joined."""
    await peer.listen()
    async with Host(list(kinds), peer.url) as host:
        await asyncio.wait_for(peer.joined.wait(), 5)
        yield host
    await peer.stop()
