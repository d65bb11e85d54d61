"""A host that is killed, frozen, busy or drained, and a node that starts again: against the real program."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from real_node import Member, Purse
from real_node import pytestmark as pytestmark

import greenroom as gr
from greenroom.testing import Program


async def test_a_handler_that_computes_past_its_lease_loses_nothing(greenroom_node: Program) -> None:
    async with greenroom_node.host(Member) as host:
        session = next(iter(host.sessions.values()))
        assert session.welcome is not None
        seconds = session.welcome.lease_ms / 1000 + 1
        with pytest.raises(gr.Unknown) if seconds > 9 else _nothing():
            assert await host.ref(Member, "m", by=30).compute(seconds) == 0
        assert not session.lost


class _nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


async def test_a_host_that_is_killed_is_replaced_and_its_reads_run_again(greenroom_node: Program, tmp_path: Path) -> None:
    """L1: by the process's end, not by the lease's."""
    other = tmp_path / "other.py"
    other.write_text(f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nimport real_node as t\nt.gr.serve(t.Member)\n")
    environment = os.environ | {"GREENROOM_HOST": greenroom_node.url}
    process = subprocess.Popen([sys.executable, str(other)], env=environment)
    try:
        async with greenroom_node.client() as client:
            await until_answered(client)
            running = asyncio.ensure_future(client.ref(Member, "k", by=20).slow(10))
            reading = asyncio.ensure_future(client.ref(Member, "r", by=20).slow_read(0.5))
            await asyncio.sleep(0.3)
            async with greenroom_node.host(Member):
                process.kill()
                with pytest.raises(gr.Unknown) as lost:
                    await running
                assert lost.value.reason == "HostLost"
                assert await reading == 0
                assert await client.ref(Member, "k", by=20).see() == 1
    finally:
        process.kill()
        process.wait()


async def until_answered(client: gr.Host) -> None:
    while True:
        try:
            await client.ref(Member, "first", by=5).see()
            return
        except gr.Refused:
            await asyncio.sleep(0.02)


async def test_a_host_that_drains_fails_no_call(greenroom_node: Program) -> None:
    async with greenroom_node.client() as client:
        first = greenroom_node.host(Purse)
        await first.start()
        failed: list[BaseException] = []
        done = asyncio.Event()

        async def pay(name: str) -> int:
            count = 0
            while not done.is_set():
                try:
                    await client.ref(Purse, name, by=10).deposit(1)
                    count += 1
                except gr.Failure as error:
                    failed.append(error)
            return count

        payers = [asyncio.ensure_future(pay(f"p{number}")) for number in range(8)]
        await asyncio.sleep(0.2)
        async with greenroom_node.host(Purse):
            await first.drain()
            await first.close()
            await asyncio.sleep(0.2)
            done.set()
            counts = await asyncio.gather(*payers)
            assert failed == []
            assert [await client.ref(Purse, f"p{number}", by=10).get() for number in range(8)] == counts


class Guest(gr.Actor, migrate=True):
    visits: int = 0

    async def visit(self) -> int:
        self.visits += 1
        return self.visits


async def test_what_an_actor_holds_goes_along_when_its_host_drains(greenroom_node: Program) -> None:
    async with greenroom_node.client() as client:
        first = greenroom_node.host(Guest)
        await first.start()
        guests = [client.ref(Guest, f"g{number}", by=10) for number in range(8)]
        assert [await guest.visit() for guest in guests] == [1] * 8
        async with greenroom_node.host(Guest):
            await first.drain()
            await first.close()
            assert [await guest.visit() for guest in guests] == [2] * 8


async def test_a_frozen_host_acts_no_more_when_it_wakes(greenroom_node: Program, tmp_path: Path) -> None:
    """L2, on a real process: SIGSTOP past the lease."""
    other = tmp_path / "other.py"
    other.write_text(f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nimport real_node as t\nt.gr.serve(t.Purse)\n")
    environment = os.environ | {"GREENROOM_HOST": greenroom_node.url}
    process = subprocess.Popen([sys.executable, str(other)], env=environment)
    try:
        async with greenroom_node.client() as client:
            purse = client.ref(Purse, "ada", by=20)
            while True:
                try:
                    await purse.deposit(1)
                    break
                except gr.Refused:
                    await asyncio.sleep(0.02)
            process.send_signal(signal.SIGSTOP)
            async with greenroom_node.host(Purse):
                assert await purse.get() == 1
                assert await purse.deposit(1) == 2
                process.send_signal(signal.SIGCONT)
                for expected in range(3, 50):
                    assert await purse.deposit(1) == expected
    finally:
        process.kill()
        process.wait()


async def test_a_node_that_starts_again_is_dialled_again(greenroom_node: Program) -> None:
    async with greenroom_node.host(Member) as host:
        assert await host.ref(Member, "m", by=5).see() == 1
        await asyncio.to_thread(greenroom_node.restart)
        while True:
            try:
                assert await host.ref(Member, "m", by=5).see() == 1
                break
            except (gr.Refused, gr.Unknown):
                await asyncio.sleep(0.02)
