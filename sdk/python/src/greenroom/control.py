"""The control lane, in a thread of its own: a handler that computes for a minute loses no lease."""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from . import errors, frames
from .frames import FrameError, Reader, frame, text, varint
from .ways import NotLetIn, Way


def now() -> int:
    """Nanoseconds of a clock that goes on while the machine is suspended."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Welcome(msgspec.Struct):
    """What a session is."""

    cluster: str
    node: int
    session: int
    secret: bytes
    lease_ms: Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)]
    shards: Annotated[list[int], msgspec.Meta(max_length=1024)] = []
    frame_len_max: Annotated[int, msgspec.Meta(ge=1024, lt=1 << 32)] = frames.FRAME_MAX
    window: Annotated[int, msgspec.Meta(ge=1)] = 1 << 20
    unknown: list[str] = []
    rerun: bool = False
    """Whether reliable turns are run twice."""

    def __post_init__(self) -> None:
        self.shards = sorted(set(self.shards))


class Lease:
    """Until when this host may act. It is read on the loop and written by the control lane's thread.

    It counts from when it was asked for, not from when it was answered, and ends at 0.99 of what was granted: before the
    node can believe that it is over.
    """

    def __init__(self, clock: Callable[[], int] = now) -> None:
        self.clock = clock
        self.until = 0
        self.next = 0
        self._asked: dict[int, int] = {}

    def begin(self, asked: int, ms: int) -> None:
        """The Welcome's lease, to a Hello that was sent at `asked`."""
        self.until = asked + ms * 990_000

    def ask(self) -> bytes:
        """An Alive, which counts from now."""
        self.next += 1
        self._asked[self.next] = self.clock()
        if len(self._asked) > 64:
            del self._asked[min(self._asked)]
        return frame(frames.ALIVE, varint(self.next))

    def granted(self, number: int, ms: int) -> None:
        """The node's answer to an Alive."""
        asked = self._asked.pop(number, None)
        if asked is not None:
            self.until = max(self.until, asked + ms * 990_000)

    def is_over(self) -> bool:
        return self.clock() >= self.until


class Control(threading.Thread):
    """Dials, greets, and keeps the lease. What else comes is told to the loop by `tell`, in order; last of all why it ended."""

    def __init__(self, way: Way, hello: dict[str, Any], lease: Lease, describe: Callable[[str], bytes], tell: Any) -> None:
        super().__init__(name="greenroom-control", daemon=True)
        self._way = way
        self._hello = hello
        self._lease = lease
        self._describe = describe
        self._tell: Callable[[str, Any], None] = tell
        self._out: deque[bytes] = deque()
        # Sockets, as these know that they are closed: a file's bare number may be another's by then.
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        self._wake_write.setblocking(False)
        self._socket: socket.socket | None = None
        self._closing = False

    def say(self, data: bytes) -> None:
        """Sends a frame; from any thread."""
        self._out.append(data)
        self._wake()

    def close(self) -> None:
        """Ends the lane, after what was said before; from any thread."""
        self._closing = True
        self._wake()

    def forget(self) -> None:
        """In a forked child: closes what is the parent's."""
        if self._socket is not None:
            self._socket.close()

    def _wake(self) -> None:
        try:
            self._wake_write.send(b"\0")
        except OSError:
            pass  # Full, so that it wakes in any case; or over.

    def run(self) -> None:
        try:
            self._live()
            self._tell("lost", "the session is closed")
        except NotLetIn as error:
            self._tell("refused", str(error))
        except (OSError, FrameError, msgspec.DecodeError) as error:
            self._tell("lost", f"{self._way.url}: {error or type(error).__name__}")
        except Exception as error:  # Whatever it is, the loop must hear that the lane has ended.
            self._tell("lost", f"{self._way.url}: the control lane failed: {errors.words_of(error)}")
        finally:
            if self._socket is not None:
                self._socket.close()
            self._wake_read.close()
            self._wake_write.close()

    def _live(self) -> None:
        plain = self._way.dial(GREETING)
        self._socket = plain
        sock = self._socket = self._way.secure(plain)
        asked = now()
        greeting = frames.MAGIC + frames.VERSION.to_bytes(2, "little") * 2
        sock.sendall(self._way.request() + frame(frames.HELLO, greeting, frames.bare_map(self._hello)))
        answer = self._way.answer()
        splitter = frames.Splitter()
        alive = 0
        while True:
            timeout = GREETING if alive == 0 else max(0.0, (min(alive, self._lease.until) - now()) / 1e9)
            pending = isinstance(sock, ssl.SSLSocket) and sock.pending() > 0
            ready = [sock] if pending else select.select([sock, self._wake_read], [], [], timeout)[0]
            if alive and self._lease.is_over():
                raise FrameError("the lease is over, and was not renewed")
            if self._wake_read in ready:
                self._wake_read.recv(4096)
            while self._out:
                sock.sendall(self._out.popleft())
            if self._closing:
                return
            if not ready and alive == 0:
                raise FrameError("the node does not answer the greeting")
            if sock in ready:
                data = sock.recv(64 << 10)
                if not data:
                    raise FrameError("the node closed the connection")
                if answer is not None:
                    rest = answer(data)
                    if rest is None:
                        continue
                    answer, data = None, rest
                for kind, reader in self._frames(splitter, data, alive == 0):
                    if alive == 0:
                        welcome = self._welcome(kind, reader)
                        self._lease.begin(asked, welcome.lease_ms)
                        beat = max(1, welcome.lease_ms * 1_000_000 // 5)
                        for digest in welcome.unknown:
                            sock.sendall(self._describe(digest))
                        alive = now()
                        self._tell("welcome", welcome)
                    else:
                        self._hear(kind, reader)
            if alive and now() >= alive:
                sock.sendall(self._lease.ask())
                alive = now() + beat  # pyright: ignore[reportPossiblyUnboundVariable]

    def _frames(self, splitter: frames.Splitter, data: bytes, is_greeting: bool) -> list[tuple[int, Reader]]:
        try:
            return splitter.frames(data)
        except FrameError as error:
            # What comes instead of a Welcome, and is no frame, is somebody else's.
            raise NotLetIn(f"{self._stranger()} ({error})") if is_greeting else error from None

    def _stranger(self) -> str:
        return f"{self._way.url} does not speak the host protocol: is it the host socket of a Greenroom node?"

    def _welcome(self, kind: int, reader: Reader) -> Welcome:
        if kind == frames.GOODBYE:
            code, reason = reader.u8(), reader.text()
            raise NotLetIn(reason) if code == 5 else FrameError(reason)
        if kind != frames.WELCOME or reader.bytes(4) != frames.MAGIC:
            raise NotLetIn(self._stranger())
        lowest, highest = reader.number(2), reader.number(2)
        if not lowest <= frames.VERSION <= highest:
            raise NotLetIn(f"the node speaks version {highest} of the host protocol, this SDK {frames.VERSION}")
        return msgspec.msgpack.decode(reader.rest(), type=Welcome)

    def _hear(self, kind: int, reader: Reader) -> None:
        match kind:
            case frames.LEASE:
                number = reader.varint()
                self._lease.granted(number, reader.varint())
            case frames.OFFERED:
                self._tell("offered", (reader.varint(), reader.text(), reader.u8(), reader.text()))
            case frames.LANE_LOST:
                self._tell("lane lost", reader.varint())
            case frames.NODES:
                self._tell("nodes", reader.rest())
            case frames.GOODBYE:
                code, reason = reader.u8(), reader.text()
                if code == 5:
                    raise NotLetIn(reason)
                self._tell("goodbye", (code, reason))
            case _:
                pass  # A later version's.


def goodbye(code: int, reason: str) -> bytes:
    """The last frame of a lane."""
    return frame(frames.GOODBYE, bytes((code,)), text(reason[:1000]))


GREETING = 5.0
"""Seconds that a greeting may take."""
