"""Sessions and lanes at a scripted node."""

from __future__ import annotations

import asyncio
import logging
import socket
from pathlib import Path
from typing import Any

import pytest
from actors import COMPUTE, Counter, SAVE_NOW, Slow, msg
from peer import Peer, hosting

import greenroom as gr
from greenroom import frames
from greenroom.frames import frame, text, varint
from greenroom.ways import Way, find


async def test_descriptions_that_a_node_does_not_know_are_shown(peer: Peer) -> None:
    async with hosting(peer, Counter):
        (offer,) = peer.hellos[0]["offers"]
        assert (offer["kind"], offer["version"], offer["compatible"]) == ("counter", 1, 1)
        assert peer.described[0]["methods"][0]["name"] == "add"


async def test_a_handler_that_computes_loses_no_lease(peer: Peer) -> None:
    peer.lease_ms = 500
    async with hosting(peer, Slow) as host:
        await peer.seat()
        # The peer is on the same loop, so that its answers wait too: the Alives must be there afterwards.
        turn = peer.turn(COMPUTE, {"seconds": 0.3})
        assert (await peer.end(turn))[0] == 0
        session = next(iter(host.sessions.values()))
        assert session.lease.next >= 2 and not session.lost


async def test_a_node_that_answers_no_alive_loses_the_session(peer: Peer) -> None:
    peer.lease_ms, peer.answers = 200, False
    async with hosting(peer, Slow) as host:
        session = next(iter(host.sessions.values()))
        await asyncio.wait_for(session.over, 5)
        assert "lease" in session.why


async def test_a_save_is_an_ask_and_names_the_turn(peer: Peer) -> None:
    from msgspec import msgpack

    async with hosting(peer, Counter):
        await peer.seat()
        turn = peer.turn(SAVE_NOW)
        _, ask = await peer.hear(frames.ASK)
        request, by, seat, operation = ask.varint(), ask.varint(), ask.varint(), ask.u8()
        what = msgpack.decode(ask.rest()[2:])
        assert (by, seat, operation) == (turn, 1, frames.SAVE)
        assert what == {"state": "self", "fields": frames.fields({"self": frames.packed({"count": 0})})}
        peer.reply(request)
        assert await peer.end(turn) == (0, None, b"")


async def test_what_is_carried_travels(peer: Peer) -> None:
    async with hosting(peer, Traveller):
        await peer.seat(carried=frames.packed({"visited": ["a"]}))
        assert await peer.call(0, {"place": "b"}) == (0, ["a", "b"], b"")
        peer.say(frame(frames.DEACTIVATE, varint(1), b"\4", b"\1"))
        _, body = await peer.hear(frames.RELEASED)
        assert (body.varint(), body.u8(), body.rest()) == (1, 0, frames.packed({"visited": ["a", "b", "migrating"]}))


class Traveller(gr.Actor, migrate=True):
    visited: list[str] = []

    async def go(self, place: str) -> list[str]:
        self.visited.append(place)
        return self.visited

    async def deactivating(self, why: str) -> None:
        self.visited.append(why)


async def test_a_state_of_an_older_version_goes_through_migrate(peer: Peer) -> None:
    async with hosting(peer, Newer):
        await peer.seat(state=frames.packed({"name": "Ada Lovelace"}))
        assert await peer.call(0) == (0, "Lovelace, Ada", b"")
        peer.activate(2, "other", b"\x01\x09\x80")
        _, body = await peer.hear(frames.ACTIVATED)
        assert (body.varint(), body.u8()) == (2, frames.REFUSED)
        assert "version 9" in str(msg(body.rest()))


class Newer(gr.Actor, persistent=True, state_version=2):
    first: str = ""
    last: str = ""

    async def get(self) -> str:
        return f"{self.last}, {self.first}"

    @classmethod
    def migrate(cls, version: int, state: dict[str, Any]) -> dict[str, Any]:
        first, last = state["name"].split()
        return {"first": first, "last": last}


@pytest.mark.parametrize(
    "bad",
    [
        b"\0\0\0\0\1",
        b"\xff\xff\xff\xff\x24",
        frame(frames.TURN, varint(1), varint(9), b"\0\1\0\0", frames.NIL),
        frame(frames.TURN, b"\x80"),
        frame(frames.ACTIVATE, varint(1), varint(7), varint(1), b"\0", b"\1k", b"\0"),
        frame(frames.DEACTIVATE, varint(5), b"\0\0"),
        frame(frames.ACTIVATE, b"\x80\x00"),
    ],
)
async def test_a_bad_frame_ends_the_lane_and_the_session_joins_another(peer: Peer, bad: bytes) -> None:
    async with hosting(peer, Slow):
        await peer.seat()
        peer.joined.clear()
        peer.say(bad)
        await asyncio.wait_for(peer.joined.wait(), 5)
        while not peer.said.empty():
            peer.said.get_nowait()
        await peer.seat(2)
        assert (await peer.call(COMPUTE, {"seconds": 0}, seat=2))[0] == 0
        assert [kind for kind, _ in peer.control].count(frames.LANE_DROPPED) == 1


async def test_unknown_frames_and_frames_in_pieces_do_no_harm(peer: Peer) -> None:
    async with hosting(peer, Slow):
        await peer.seat()
        whole = frame(200, b"later") + frame(frames.TURN, b"\x63\x01", varint(COMPUTE), b"\1\0\0", frames.packed({"seconds": 0}))
        for at in range(len(whole)):
            peer.say(whole[at : at + 1])
            await asyncio.sleep(0)
        assert (await peer.end(0x63))[0] == 0


async def test_what_serves_no_host_protocol_is_named(peer: Peer, tmp_path: Any) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(frame(frames.GOODBYE, b"\x05", b"\x0bno such user"[:12]))
        writer.close()

    server = await asyncio.start_unix_server(answer, tmp_path / "other.sock")
    with pytest.raises(gr.NotLetIn, match="no such use"):
        async with gr.Host([Slow], f"unix:{tmp_path}/other.sock"):
            pass
    server.close()


@pytest.mark.parametrize(("url", "host"), [
    ("http://[::1]:7070", b"[::1]:7070"), ("http://127.0.0.1:7070", b"127.0.0.1:7070"), ("https://door.example", b"door.example:443"),
])
def test_the_request_names_its_host_as_http_does(url: str, host: bytes) -> None:
    assert b"\r\nHost: " + host + b"\r\n" in Way(url).request()


async def test_without_a_node_it_says_what_to_start(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("GREENROOM_HOST", raising=False)
    with pytest.raises(gr.NoNode, match="greenroom node"):
        gr.Host([Slow])


@pytest.mark.parametrize("done", [True, False])
async def test_the_end_of_a_lane_is_an_error_unless_it_is_done(done: bool, peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "greenroom")
    async with hosting(peer, Slow) as host:
        (session,) = host.sessions.values()
        drained = asyncio.create_task(host.drain()) if done else None
        await asyncio.sleep(0)
        peer.say(frame(frames.GOODBYE, b"\x00" if done else b"\x04", text("its session is over")))
        await asyncio.wait_for(session.lanes[0].closed, 10)
        peer.say_control(frame(frames.GOODBYE, b"\x00", text("its session is over")))
        await asyncio.wait_for(session.over, 10)
        if drained:
            await drained
    (ended,) = [record for record in caplog.records if record.getMessage() == "the node ends lane 0: its session is over"]
    assert ended.levelno == (logging.INFO if done else logging.ERROR)
    assert done == all(record.levelno <= logging.INFO for record in caplog.records)


async def test_sockets_of_dead_nodes_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("GREENROOM_HOST", raising=False)
    directory = tmp_path / "greenroom"
    directory.mkdir()

    def node(name: str) -> socket.socket:
        found = socket.socket(socket.AF_UNIX)
        found.bind(str(directory / f"{name}.sock"))
        found.listen()
        found.setblocking(False)
        return found

    with node("a"), node("b"):
        pass
    (directory / "c.sock").symlink_to(directory / "nothing")
    with pytest.raises(gr.NoNode, match=r"no node listens at unix:[^,]*/a.sock, unix:[^,]*/b.sock, which .*: start one by `greenroom node`"):
        gr.Host([Slow])
    with node("d") as first:
        assert [way.url for way in find()] == [f"unix:{directory}/d.sock"]
        with node("e"), pytest.raises(gr.NoNode, match=r"several nodes .* one of unix:[^,]*/d.sock, unix:[^,]*/e.sock, or"):
            gr.Host([Slow])
        # The node has heard nothing of it.
        with pytest.raises(BlockingIOError):
            first.accept()
