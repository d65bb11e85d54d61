"""Hosts and clients: sessions with nodes, begun again when they are lost."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import weakref
from typing import Any

from . import frames
from .actor import Actor, kind_of
from .context import Referrer
from .description import checked
from .errors import Refused
from .kind import ClassError, Kind
from .lane import Lane
from .session import PAUSE_MAX, PAUSE_MIN, Session
from .turn import Seat, Turn, current
from .ways import NoNode, NotLetIn, Way, find

log = logging.getLogger("greenroom")


class Host(Referrer):
    """A process that runs turns of the kinds that it offers: `async with Host([ChatRoom]) as host: ..`. Without kinds, a client.

    `node` has the ways in, by comma; by default they are those of `GREENROOM_HOST`, or the one node's that has a socket here.
    """

    def __init__(
        self,
        kinds: list[type[Actor]] | None = None,
        node: str | None = None,
        *,
        name: str | None = None,
        token: str | None = None,
        weight: int = 1,
        turns_max: int = 1024,
        seats_max: int = 100_000,
        lanes: int = 4,
    ) -> None:
        self._kinds: list[Kind] = [checked(kind_of(kind)) for kind in kinds or []]
        names = [kind.name for kind in self._kinds]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ClassError(f"two classes are of kind {', '.join(sorted(twice))}: write class NAME(gr.Actor, kind=..)")
        if any(kind.options.reliable for kind in self._kinds):
            # Reliable actors are on all shards.
            lanes = max(lanes, LANES_ALL)
        if not frames.CODECS:
            raise ValueError(f"GREENROOM_CODEC is {frames.CHOICE!r}: write messagepack or json, or leave it unset for both")
        self._ways = find(node, token)
        self._hello: dict[str, Any] = {
            "name": name or f"{os.path.basename(sys.argv[0]) or 'python'}-{os.getpid()}", "sdk": SDK, "lanes": lanes,
            "codecs": frames.CODECS, "seats_max": seats_max, "turns_max": turns_max, "bytes_max": 8 << 20, "weight": weight,
            "spread": "",
        }  # fmt: skip
        if token := next((way.token for way in self._ways if way.token), None):
            self._hello["token"] = token
        self.sessions: dict[Way, Session] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._changed = asyncio.Condition()
        self._closing = False
        self._ended: dict[Way, str] = {}
        """Why the last session at a way in has ended."""
        self._refused: set[Way] = set()
        """Where it will not be let in: these are not dialled again."""
        _HOSTS.add(self)

    async def __aenter__(self) -> Host:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self, timeout: float = 10.0) -> None:
        """Begins its sessions; on return one of them is open, and what it offers there is taken.

        Raises `NotLetIn` if all nodes refuse it, and `NoNode` if none has taken it in time; both say why of each.
        """
        self._tasks = [asyncio.create_task(self._stay(way)) for way in self._ways]
        try:
            async with asyncio.timeout(timeout):
                while not self._open():
                    if all(task.done() for task in self._tasks):
                        break
                    await self._change()
        except TimeoutError:
            pass
        if not self._open():
            refusal, whys = self._refusal, self._whys()
            await self.close()
            raise NotLetIn(refusal) if refusal is not None else NoNode(f"no node lets this host in: {whys}")

    async def drain(self, timeout: float = 30.0) -> None:
        """Gives all seats back, saved or carried, so that no call fails; waits for it so long at most."""
        self._closing = True
        sessions = [session for session in self.sessions.values() if not session.lost]
        for session in sessions:
            session.drain()
        if sessions:
            await asyncio.wait([session.over for session in sessions], timeout=timeout)

    async def close(self) -> None:
        """Ends its sessions. What runs is abandoned: see `drain`."""
        self._closing = True
        for session in self.sessions.values():
            if not session.lost:
                session.leave(0, "the host is closed")
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        _HOSTS.discard(self)

    async def run(self) -> None:
        """Serves until it is closed, or no node lets it in any more."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._refusal is not None:
            raise NotLetIn(self._refusal)

    # For references.

    def scope(self) -> tuple[Seat | None, Turn | None]:
        turn = current.get()
        return (turn.seat, turn) if turn is not None else (None, None)

    def lane_now(self, kind: str, key: str) -> Lane | None:
        turn = current.get()
        if turn is not None:
            return turn.lane
        lanes = self._lanes()
        return lanes[hash((kind, key)) % len(lanes)] if lanes else None

    async def lane(self, kind: str, key: str) -> Lane:
        try:
            async with asyncio.timeout(PATIENCE):
                while (lane := self.lane_now(kind, key)) is None:
                    if self._closing:
                        raise Refused("Unreachable", {"node": self._ways[0].url, "reason": "this client is closed"})
                    await self._change()
        except TimeoutError:
            raise Refused("Unreachable", {"node": self._ways[0].url, "reason": self._whys()}) from None
        return lane

    def forget(self) -> None:
        """In a forked child: nothing of its parent's is served, or kept open."""
        for session in self.sessions.values():
            session.forget()

    def _lanes(self) -> list[Lane]:
        return [lane for session in self._open() for lane in session.lanes.values() if not lane.dead]

    def _open(self) -> list[Session]:
        return [session for session in self.sessions.values() if session.open.done() and not session.is_over() and session.is_taken]

    @property
    def _refusal(self) -> str | None:
        """Why no node will have it; `None` as long as one may."""
        return self._whys() if self._refused.issuperset(self._ways) else None

    def _whys(self) -> str:
        """Of each node, why it has no session there."""
        whys = {way: self._ended.get(way) or "no answer" for way in self._ways}
        return "; ".join(why if way.url in why else f"{way.url}: {why}" for way, why in whys.items())

    async def _change(self) -> None:
        """Waits until something has changed, or may have: a lane that was joined again tells nobody."""
        async with self._changed:
            try:
                await asyncio.wait_for(self._changed.wait(), LOOK_AGAIN)
            except TimeoutError:
                pass

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _stay(self, way: Way) -> None:
        """Has a session at a node, and after its loss the next one."""
        pause = PAUSE_MIN
        ended: dict[str, Any] | None = None
        while not self._closing:
            session = Session(way, self._kinds, self._hello | ({"ended": ended} if ended else {}))
            self.sessions[way] = session
            session.start()
            await session.open
            await self._tell()
            if not session.lost:
                pause = PAUSE_MIN
                if not session.is_taken:
                    session.leave(0, "none of its kinds is taken")
                    whys = "; ".join(f"{kind} is refused: {why}" for kind, (_, why) in session.offered.items())
                    await self._give_up(way, whys)
                    return
                taken = session.taken
                log.info("serving %s at %s" if taken else "connected%s to %s", ", ".join(taken), way.url)
                await session.over
            ended = session.ended or ended
            self._ended[way] = session.why
            if session.refused:
                await self._give_up(way, session.why)
                return
            await self._tell()
            if not self._closing:
                log.warning("%s; dialling again", session.why)
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSE_MAX)

    async def _give_up(self, way: Way, why: str) -> None:
        self._ended[way] = why
        self._refused.add(way)
        log.error("%s is not dialled again: %s", way.url, why)
        await self._tell()


async def connect(node: str | None = None, *, token: str | None = None, name: str | None = None) -> Host:
    """A client: `room = (await gr.connect()).ref(ChatRoom, "lobby")`. Close it, or write `async with await connect()`."""
    client = Host([], node, name=name, token=token)
    await client.start()
    return client


def serve(*kinds: type[Actor], node: str | None = None, **options: Any) -> None:
    """Serves kinds until SIGTERM, SIGINT or SIGHUP; then gives its seats back, so that no call fails, for 30 s at most."""
    if not logging.getLogger().handlers:
        logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    try:
        asyncio.run(_serve(list(kinds), node, options))
    except (NoNode, NotLetIn, ClassError) as error:
        sys.exit(f"greenroom: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


async def _serve(kinds: list[type[Actor]], node: str | None, options: dict[str, Any]) -> None:
    loop = asyncio.get_running_loop()
    host = Host(kinds, node, **options)
    stop = asyncio.Event()
    # A hang-up that is ignored was meant to be, as by `nohup`.
    numbers = [signal.SIGTERM, signal.SIGINT]
    numbers += [signal.SIGHUP] if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN else []
    for number in numbers:
        loop.add_signal_handler(number, stop.set)
    starts, stops = asyncio.ensure_future(host.start(timeout=START)), asyncio.ensure_future(stop.wait())
    await asyncio.wait([starts, stops], return_when=asyncio.FIRST_COMPLETED)
    if not starts.done():
        starts.cancel()
        await asyncio.wait([starts])
        await host.close()
        return
    starts.result()
    runs = asyncio.ensure_future(host.run())
    await asyncio.wait([runs, stops], return_when=asyncio.FIRST_COMPLETED)
    if runs.done():
        stops.cancel()
        runs.result()
        return
    for number in numbers:
        # A terminal that has gone tells a whole session, more than once: a second hang-up is no impatience.
        if number != signal.SIGHUP:
            loop.remove_signal_handler(number)
    await host.drain()
    await host.close()


def _forked() -> None:
    for host in list(_HOSTS):
        host.forget()


SDK = "python 0.1.0"
PATIENCE = 5.0
"""Seconds that a call waits for a session."""
START = 30.0
LOOK_AGAIN = 0.02
LANES_ALL = 4096
_HOSTS: weakref.WeakSet[Host] = weakref.WeakSet()
os.register_at_fork(after_in_child=_forked)
