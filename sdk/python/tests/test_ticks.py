"""The tick of a one-shot reminder whose host dies, freezes or fails in its turn: against the real program."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_node import pytestmark as pytestmark
from test_operations import found

import greenroom as gr
from greenroom.testing import Program

LEASE = 1.0
"""Seconds that a host may act after it last asked."""


class Dunning(gr.Actor, persistent=True, save="turn"):
    """Its tick says in a file that it has begun, and goes on once it may."""

    paid: int = 0

    async def arm(self, folder: str, after: float) -> None:
        await self.cx.remind(self.pay, folder, after=after, name="pay")

    async def pay(self, folder: str) -> None:
        begun = len(list(Path(folder).glob("begun-*")))
        (Path(folder) / f"begun-{begun}-{os.getpid()}").touch()
        while begun == 0:
            # The first attempt never ends by itself.
            await asyncio.sleep(0.02)
        self.paid += 1

    async def arm_failing(self, folder: str, fails: int) -> None:
        await self.cx.remind(self.fail, folder, fails, after=1, name="fail")

    async def fail(self, folder: str, fails: int) -> None:
        attempt = len(list(Path(folder).glob("attempt-*")))
        (Path(folder) / f"attempt-{attempt}").touch()
        self.paid += 1
        if attempt < fails:
            raise RuntimeError(f"attempt {attempt} fails")

    @gr.read
    async def look(self) -> int:
        return self.paid


@pytest.fixture
def node(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Program]:
    """A node whose configuration ends with the test's parameter, if it has one."""
    config = tmp_path / "node.toml"
    config.write_text(f"[hosts]\nlease = {LEASE}\n{getattr(request, 'param', '')}")
    node = Program("--config", str(config))
    yield node
    node.stop()


def start_host(node: Program, script: Path) -> subprocess.Popen[bytes]:
    script.write_text(f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nimport test_ticks as t\nt.gr.serve(t.Dunning)\n")
    return subprocess.Popen([sys.executable, str(script)], env=os.environ | {"GREENROOM_HOST": node.url})


async def until_there(tmp_path: Path, pattern: str) -> None:
    while not list(tmp_path.glob(pattern)):
        await asyncio.sleep(0.02)


async def arm(client: gr.Host, folder: Path) -> None:
    while True:
        try:
            return await client.ref(Dunning, "d", by=10).arm(str(folder), 1)
        except gr.Refused:
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP])
async def test_the_tick_of_a_reminder_whose_host_is_killed_or_frozen_in_its_turn_is_made_again(
    node: Program, tmp_path: Path, fault: signal.Signals
) -> None:
    first = start_host(node, tmp_path / "host.py")
    others: list[subprocess.Popen[bytes]] = []
    try:
        async with node.client() as client:
            await arm(client, tmp_path)
            await until_there(tmp_path, "begun-0-*")
            first.send_signal(fault)
            others.append(start_host(node, tmp_path / "host.py"))
            await until_there(tmp_path, "begun-1-*")
            if fault == signal.SIGSTOP:
                # What it says when it wakes does not count.
                first.send_signal(signal.SIGCONT)
            dunning = client.ref(Dunning, "d", by=10)
            while await dunning.look() == 0:
                await asyncio.sleep(0.05)
            assert await dunning.look() == 1
    finally:
        for process in [first, *others]:
            process.kill()
            process.wait()


@pytest.mark.parametrize("node", ["[kinds.dunning]\nretry = 2\n"], indirect=True)
async def test_a_tick_that_raises_is_made_again_and_is_a_finding_after_its_last_attempt(node: Program, tmp_path: Path) -> None:
    async with node.host(Dunning) as host:
        dunning = host.ref(Dunning, "f", by=10)
        await dunning.arm_failing(str(tmp_path), 1)
        while await dunning.look() == 0:
            await asyncio.sleep(0.05)
        assert await dunning.look() == 1, "nothing is kept of the attempt that has failed"
        for attempt in tmp_path.glob("attempt-*"):
            attempt.unlink()
        await dunning.arm_failing(str(tmp_path), 9)
        assert '"fail" of dunning/f' in (await found(node, "reminders-failed"))["text"]
        assert len(list(tmp_path.glob("attempt-*"))) == 2
        assert await dunning.look() == 1
