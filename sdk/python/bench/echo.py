"""What `greenroom bench host` runs: actors that echo, or with `floor` the same echo with no Greenroom in between."""

import asyncio
import os
import sys

import msgspec

import greenroom as gr


class Volatile(gr.Actor, kind="echo"):
    async def echo(self, text: str, n: int) -> str:
        return text


class Persistent(gr.Actor, kind="echo", persistent=True, save="turn"):
    turns: int = 0

    async def echo(self, text: str, n: int) -> str:
        self.turns += 1
        return text


class Reliable(gr.Actor, kind="echo", reliable=True):
    turns: int = 0

    async def echo(self, text: str, n: int) -> str:
        self.turns += 1
        return text


class Arguments(msgspec.Struct):
    text: str
    n: int


async def echo(text: str, n: int) -> str:
    return text


class Floor(asyncio.Protocol):
    """Frames of a length, a number and a payload, each answered by a task of its own, a batch a round."""

    def __init__(self) -> None:
        self.decoder = msgspec.msgpack.Decoder(Arguments)
        self.encoder = msgspec.msgpack.Encoder()
        self.tasks: set[asyncio.Task[None]] = set()
        self.out: list[bytes] = []
        self.rest = b""
        self.closed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        data = self.rest + data
        at = 0
        while len(data) - at >= 4:
            end = at + 4 + int.from_bytes(data[at : at + 4], "little")
            if end > len(data):
                break
            task = asyncio.create_task(self.answer(data[at + 4 : at + 8], self.decoder.decode(data[at + 8 : end])))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
            at = end
        self.rest = data[at:]

    async def answer(self, number: bytes, given: Arguments) -> None:
        reply = self.encoder.encode(await echo(given.text, given.n))
        if not self.out:
            asyncio.get_running_loop().call_soon(self.flush)
        self.out += ((4 + len(reply)).to_bytes(4, "little"), number, reply)

    def flush(self) -> None:
        self.transport.write(b"".join(self.out))
        self.out.clear()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set_result(None)


async def floor() -> None:
    path = os.environ["GREENROOM_HOST"].removeprefix("unix:")
    _, protocol = await asyncio.get_running_loop().create_unix_connection(Floor, path)
    await protocol.closed


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["floor"]:
            asyncio.run(floor())
        case ["volatile"]:
            gr.serve(Volatile)
        case ["persistent"]:
            gr.serve(Persistent)
        case ["reliable"]:
            gr.serve(Reliable)
        case _:
            sys.exit("usage: echo.py floor|volatile|persistent|reliable")
