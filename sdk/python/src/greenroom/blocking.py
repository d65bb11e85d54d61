"""A client for programs without asyncio."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator
from typing import Any, TypeVar

from .context import Referrer
from .errors import Refused
from .host import Host, connect
from .lane import Lane

T = TypeVar("T")


class Client(Referrer):
    """Runs calls on a loop of its own: `client.run(client.ref(ChatRoom, "lobby").post("ada", "hi"))`."""

    def __init__(self, node: str | None = None, *, token: str | None = None) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="greenroom-client", daemon=True)
        self._thread.start()
        try:
            self._host: Host = self.run(connect(node, token=token))
        except BaseException:
            self._stop()
            raise

    def run(self, call: Awaitable[T]) -> T:
        """Makes a call, and waits for its reply; or until a one-way message has gone."""
        return self._begin(call if inspect.iscoroutine(call) else _awaited(call)).result()

    def each(self, stream: AsyncIterator[T]) -> Iterator[T]:
        """The items of a stream."""
        while True:
            try:
                yield self.run(_next(stream))
            except StopAsyncIteration:
                return

    def close(self) -> None:
        """Ends its session."""
        if not self._loop.is_closed():
            self.run(self._host.close())
            self._stop()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def lane_now(self, kind: str, key: str) -> Lane | None:
        # Messages go from the loop's thread alone.
        return self._host.lane_now(kind, key) if threading.current_thread() is self._thread else None

    async def lane(self, kind: str, key: str) -> Lane:
        return await self._host.lane(kind, key)

    def begin(self, message: Coroutine[Any, Any, None]) -> Any:
        return self._begin(message)

    def _begin(self, what: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        if self._loop.is_closed():
            what.close()
            raise Refused("Unreachable", {"reason": "this client is closed"})
        return asyncio.run_coroutine_threadsafe(what, self._loop)

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _awaited(call: Awaitable[T]) -> T:
    return await call


async def _next(stream: AsyncIterator[T]) -> T:
    return await anext(stream)


def connect_sync(node: str | None = None, *, token: str | None = None) -> Client:
    """A client for programs without asyncio."""
    return Client(node, token=token)
