"""A session: a host's stay at one node, from its Hello to its loss. It never comes back; the next one begins with nothing."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec

from . import frames
from .control import Control, Lease, Welcome, goodbye
from .description import describe, digest
from .frames import frame, text, varint
from .kind import Kind
from .lane import Lane
from .ways import Way

log = logging.getLogger("greenroom")


class Session:
    """One session. All of it but its control lane runs on the loop."""

    def __init__(self, way: Way, kinds: list[Kind], hello: dict[str, Any]) -> None:
        self.loop = asyncio.get_running_loop()
        self.way = way
        self.kinds = kinds
        self.lanes: dict[int, Lane] = {}
        self.lease = Lease()
        self.welcome: Welcome | None = None
        self.frame_max = frames.FRAME_MAX
        self.window = 0
        self.lost = False
        self.why = ""
        self.refused = False
        self.draining = False
        self.offered: dict[str, tuple[int, str]] = {}
        self.open: asyncio.Future[None] = self.loop.create_future()
        """Done when its lanes are joined and its offers answered, or it is lost."""
        self.over: asyncio.Future[None] = self.loop.create_future()
        self._dropped: dict[int, asyncio.Event] = {}
        self._joins: set[asyncio.Task[None]] = set()
        descriptions = [describe(kind) for kind in kinds]
        digests = [digest(description) for description in descriptions]
        self._described = {
            name: frame(frames.DESCRIBE, text(kind.name), varint(kind.options.version), msgspec.json.encode(description))
            for name, kind, description in zip(digests, kinds, descriptions, strict=True)
        }
        offers = [
            {"kind": kind.name, "version": kind.options.version, "compatible": kind.options.compatible, "digest": name}
            for name, kind in zip(digests, kinds, strict=True)
        ]
        self._control = Control(way, hello | {"offers": offers}, self.lease, self._describe, self._hear)

    @property
    def taken(self) -> list[str]:
        """The kinds that the node has taken of those that it was offered."""
        return [kind.name for kind in self.kinds if self.offered.get(kind.name, (0, ""))[0] < 2]

    @property
    def is_taken(self) -> bool:
        """Whether there is anything to stay for: a client offers nothing."""
        return not self.kinds or bool(self.taken)

    def start(self) -> None:
        self._control.start()

    @property
    def node_name(self) -> str:
        return f"{self.welcome.node:x}" if self.welcome else self.way.url

    @property
    def ended(self) -> dict[str, Any] | None:
        """What the next Hello says of this session: its seats are dropped."""
        return {"session": self.welcome.session, "secret": self.welcome.secret} if self.welcome else None

    def is_over(self) -> bool:
        """Whether nothing may begin any more. It is asked before each turn, and after each await of the SDK."""
        return self.lost or self.lease.clock() >= self.lease.until

    def join(self, shard: int) -> bytes:
        """The first frame of a user lane."""
        assert self.welcome is not None
        what = {"session": self.welcome.session, "secret": self.welcome.secret, "shard": shard}
        return frame(frames.JOIN, frames.MAGIC, frames.VERSION.to_bytes(2, "little"), frames.bare_map(what))

    def lose(self, why: str, refused: bool = False) -> None:
        """Ends it: turns are abandoned and seats dropped, before anybody can greet again."""
        if self.lost:
            return
        self.lost, self.why, self.refused = True, why, refused
        for lane in self.lanes.values():
            lane.drop()
            lane.close()
        for join in self._joins:
            join.cancel()
        self._control.close()
        for done in (self.open, self.over):
            if not done.done():
                done.set_result(None)

    def leave(self, code: int, reason: str) -> None:
        """Says goodbye, and ends it."""
        for lane in self.lanes.values():
            lane.drop()
        self._control.say(goodbye(code, reason))
        self.lose(reason)

    def drain(self) -> None:
        """Asks the node to take the seats away, saved or carried, one by one."""
        if not self.draining:
            self.draining = True
            self._control.say(frame(frames.DRAIN))

    def forget(self) -> None:
        """In a forked child: it serves nothing of its parent's, and keeps none of its sockets open."""
        self.lost = True
        self._control.forget()
        for lane in self.lanes.values():
            lane.forget()

    def _describe(self, name: str) -> bytes:
        return self._described.get(name, b"")

    def _hear(self, what: str, value: Any) -> None:
        # In the control lane's thread.
        try:
            self.loop.call_soon_threadsafe(self._heard, what, value)
        except RuntimeError:
            pass  # The loop is closed: nothing runs that could be told.

    def _heard(self, what: str, value: Any) -> None:
        if self.lost:
            return
        match what:
            case "welcome":
                self.welcome = value
                self.frame_max, self.window = value.frame_len_max, value.window
                for shard in value.shards:
                    self._begin(shard)
            case "offered":
                _, kind, status, reason = value
                self.offered[kind] = (status, reason)
                if status >= 2:
                    log.error("%s is refused: %s", kind, reason)
                self._look()
            case "lane lost":
                lane = self.lanes.get(value)
                if lane is not None:
                    lane.drop()
                    lane.close()
                self._control.say(frame(frames.LANE_DROPPED, varint(value)))
                self._dropped.setdefault(value, asyncio.Event()).set()
            case "goodbye":
                code, reason = value
                if code == 0 and self.draining:
                    log.info("drained")
                self.lose(reason or "the node said goodbye")
            case "refused":
                self.lose(value, refused=True)
            case "lost":
                self.lose(value)
            case _:
                pass

    def _begin(self, shard: int) -> None:
        task = self.loop.create_task(self._keep(shard))
        self._joins.add(task)
        task.add_done_callback(self._joins.discard)

    async def _keep(self, shard: int) -> None:
        """Has a lane to the shard, as long as the session lasts."""
        pause = PAUSE_MIN
        while not self.lost:
            lane = Lane(self, shard)
            try:
                await self._connect(lane)
            except Exception as error:  # Of the system, of TLS, of names: it is tried again.
                log.warning("lane %s cannot be joined: %s", shard, error)
            else:
                self.lanes[shard] = lane
                self._look()
                joined = self.loop.time()
                await lane.closed
                if self.lost:
                    return
                # It is joined again when the node has said that the lane is lost, and was told that its seats are dropped.
                if not lane.goodbye:
                    await self._wait_dropped(shard)
                if self.loop.time() - joined > PAUSE_MAX:
                    pause = PAUSE_MIN
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE_MAX)

    async def _wait_dropped(self, shard: int) -> None:
        dropped = self._dropped.setdefault(shard, asyncio.Event())
        assert self.welcome is not None
        try:
            await asyncio.wait_for(dropped.wait(), self.welcome.lease_ms / 1000)
        except TimeoutError:
            pass
        dropped.clear()

    async def _connect(self, lane: Lane) -> None:
        sock = await self.loop.run_in_executor(None, self.way.dial, 5.0)
        sock.setblocking(False)
        lane.socket = sock
        host = self.way.address[0] if self.way.is_tls else None
        make = self.loop.create_unix_connection if self.way.is_unix else self.loop.create_connection
        await make(lambda: lane, sock=sock, ssl=True if host else None, server_hostname=host)

    def _look(self) -> None:
        assert self.welcome is not None
        complete = len(self.lanes) == len(self.welcome.shards) and len(self.offered) == len(self.kinds)
        if complete and not self.open.done():
            self.open.set_result(None)


PAUSE_MIN, PAUSE_MAX = 0.05, 2.0
"""Seconds before something is dialled again."""
