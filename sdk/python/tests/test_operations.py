"""Operations whose outcome the SDK does not await and that the node refuses: against the real program, and a scripted node."""

from __future__ import annotations

import asyncio
import json
import logging
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from peer import Peer, hosting
from real_node import pytestmark as real

import greenroom as gr
from greenroom import frames, timers
from greenroom.frames import frame, text, varint
from greenroom.testing import Program


class Account(gr.Actor, reliable=True):
    billed: int = 0

    async def bill(self, outlet: str, number: int) -> int:
        self.billed += 1
        self.cx.output(outlet, {"bill": number})
        return self.billed

    async def beat(self) -> int:
        self.billed += 1
        self.cx.every(1, self.beat)
        return self.billed

    async def stay(self) -> int:
        self.billed += 1
        self.cx.keep_alive(60)
        return self.billed

    async def leave(self) -> int:
        self.billed += 1
        self.cx.deactivate()
        return self.billed

    @gr.read
    async def look(self) -> int:
        return self.billed


class Clock(gr.Actor):
    ticks: int = 0

    async def arm(self, timers: int) -> int:
        for _ in range(timers):
            self.cx.after(600, self.tick)
        return timers

    async def tick(self) -> None:
        self.ticks += 1


def call(node: Program, path: str, arguments: Any, key: str = "") -> tuple[int, Any]:
    """A call by HTTP, under an idempotency key if there is one."""
    headers = {"Idempotency-Key": key} if key else {}
    request = urllib.request.Request(f"{node.http}/{path}", json.dumps(arguments).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


async def found(node: Program, check: str) -> dict[str, Any]:
    """The finding of a check, once there is one."""
    while True:
        with await asyncio.to_thread(urllib.request.urlopen, f"{node.http}/-/findings", timeout=20) as answer:
            for finding in json.loads(answer.read())["findings"]:
                if finding["check"] == check:
                    return finding
        await asyncio.sleep(0.1)


@real
async def test_a_refused_operation_makes_a_reliable_turn_fail_with_nothing_committed() -> None:
    node = Program("--journal", "memory:")
    try:
        async with node.host(Account) as host:
            account = host.ref(Account, "a", by=20)
            for refused, words in [
                (account.bill("hok", 1), 'there is no outlet "hok"'),
                (account.beat(), "a reliable actor's timer fires once"),
                (account.stay(), "KeepAlive"),
                (account.leave(), "Deactivate"),
            ]:
                with pytest.raises(gr.Refused) as failed:
                    await refused
                assert failed.value.reason == "NotCommitted"
                assert words in failed.value.detail["message"]
            assert await account.look() == 0
    finally:
        node.stop()


class Bills(BaseHTTPRequestHandler):
    """An outlet's other side."""

    taken: set[int] = set()

    def do_POST(self) -> None:
        self.taken.add(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["bill"])
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None: ...


@real
async def test_an_output_to_an_outlet_that_one_node_lacks_is_lost_by_no_call(tmp_path: Path) -> None:
    bills = ThreadingHTTPServer(("127.0.0.1", 0), Bills)
    Thread(target=bills.serve_forever, daemon=True).start()
    config = tmp_path / "outlets.toml"
    config.write_text(f'[reliable.outlets]\nhook = "http://127.0.0.1:{bills.server_port}/"\n')
    shared = ["--shards", "1", "--table", f"sqlite:{tmp_path / 'table'}", "--journal", f"sqlite:{tmp_path / 'journal'}"]
    has, lacks = Program(*shared, "--config", str(config), name="a"), Program(*shared, name="b")
    try:
        async with has.host(Account), lacks.host(Account):
            assert "b: []" in (await found(has, "settings-differ"))["text"]

            async def bill(number: int) -> int:
                """Bills once; gives the status, once the call is decided."""
                while True:
                    arguments = {"outlet": "hook", "number": number}
                    status, reply = await asyncio.to_thread(call, has, f"account/k{number}/bill", arguments, f"bill {number}")
                    if status == 200 or "there is no outlet" in json.dumps(reply):
                        return status
                    await asyncio.sleep(0.1)

            statuses = [await bill(number) for number in range(16)]
            billed = {number for number, status in enumerate(statuses) if status == 200}
            assert 0 < len(billed) < 16, "both nodes own partitions"
            while not Bills.taken >= billed:
                await asyncio.sleep(0.05)
            assert Bills.taken == billed, "a turn that fails sends nothing"
            # A failed turn leaves no recorded answer: its call runs anew under its key.
            lacks.stop()
            assert [await bill(number) for number in range(16)] == [200] * 16
            while len(Bills.taken) < 16:
                await asyncio.sleep(0.05)
    finally:
        has.stop()
        lacks.stop()
        bills.shutdown()


@real
async def test_a_refused_timer_of_another_actor_is_in_the_hosts_log_and_a_finding(
    greenroom_node: Program, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As a host of an earlier build, which does not count its timers.
    monkeypatch.setattr(timers, "TIMERS_MAX", 1000)
    async with greenroom_node.host(Clock) as host:
        with caplog.at_level(logging.ERROR, "greenroom"):
            assert await host.ref(Clock, "c", by=20).arm(257) == 257
            while "refuses SetTimer of clock/c" not in caplog.text:
                await asyncio.sleep(0.01)
        assert "the timers of clock/c is full (256)" in caplog.text
        finding = await found(greenroom_node, "operations-refused")
        assert finding["subject"] == {"kind": "clock"} and "SetTimer" in finding["text"]


async def test_a_refusal_that_the_node_reports_is_logged_and_the_lane_goes_on(peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    async with hosting(peer, Clock):
        with caplog.at_level(logging.ERROR, "greenroom"):
            peer.say(frame(frames.OPERATION_REFUSED, varint(9), text("clock/c"), text("SetTimer"), text("full")))
            peer.say(frame(frames.OPERATION_REFUSED, varint(0), text(""), text("topics.publish"), text("no such topic")))
            while "topics.publish" not in caplog.text:
                await asyncio.sleep(0.01)
        assert [record.getMessage() for record in caplog.records] == [
            "the node refuses SetTimer of clock/c: full",
            "the node refuses topics.publish of this host: no such topic",
        ]
