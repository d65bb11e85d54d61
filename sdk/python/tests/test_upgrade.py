"""Two versions of a class beside each other, and what its turns are told of their time: against the real program."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from real_node import pytestmark as pytestmark

import greenroom as gr
from greenroom.testing import Program


class Shift(gr.Actor, kind="shift", persistent=True, save="turn"):
    total: int = 0

    async def add(self, n: int) -> int:
        self.total += n
        return self.total


class NextShift(gr.Actor, kind="shift", persistent=True, save="turn", version=2, compatible=1, state_version=2):
    sums: list[int] = []

    @classmethod
    def migrate(cls, version: int, state: dict[str, Any]) -> dict[str, Any]:
        assert version == 1
        return {"sums": [state["total"]]}

    async def add(self, n: int) -> int:
        self.sums.append(n)
        return sum(self.sums)


class Patient(gr.Actor, kind="patient"):
    told: float = -1.0

    async def work(self) -> None:
        begun = asyncio.get_running_loop().time()
        while not self.cx.is_cancelled:
            await asyncio.sleep(0.01)
        self.told = asyncio.get_running_loop().time() - begun

    @gr.read
    async def heard(self) -> bool:
        return self.told >= 0


async def test_actors_that_run_go_to_a_newer_version_with_their_state_and_no_call_fails(greenroom_node: Program) -> None:
    keys = [f"s{number}" for number in range(8)]
    answers: dict[str, list[int]] = {key: [] for key in keys}
    done = asyncio.Event()

    async def work(client: gr.Host, key: str) -> None:
        while not done.is_set():
            answers[key].append(await client.ref(Shift, key, by=30).add(1))

    first = greenroom_node.host(Shift)
    await first.start()
    async with greenroom_node.client() as client:
        working = [asyncio.ensure_future(work(client, key)) for key in keys]
        while min(map(len, answers.values())) < 5:
            await asyncio.sleep(0.01)
        async with greenroom_node.host(NextShift) as second:
            before = {key: len(answers[key]) for key in keys}
            while any(len(answers[key]) < before[key] + 20 for key in keys):
                await asyncio.sleep(0.01)
            await first.drain()
            await first.close()
            seen = {key: len(answers[key]) for key in keys}
            while any(len(answers[key]) < seen[key] + 5 for key in keys):
                await asyncio.sleep(0.01)
            done.set()
            await asyncio.gather(*working)
            assert {key: list(range(1, len(said) + 1)) for key, said in answers.items()} == answers
            assert await second.ref(NextShift, keys[0], by=30).add(0) == len(answers[keys[0]])


async def test_a_turn_hears_that_its_time_is_over(greenroom_node: Program) -> None:
    async with greenroom_node.host(Patient) as host:
        # It ends as its time does, so its caller may hear of either.
        with contextlib.suppress(gr.Unknown):
            await host.ref(Patient, "p", by=0.3).work()
        assert await host.ref(Patient, "p", by=30).heard()


def test_a_host_that_still_dials_ends_at_once_when_it_is_told_to(tmp_path: Path) -> None:
    program = "import greenroom as gr\nclass A(gr.Actor):\n    async def m(self) -> int: return 1\nprint('here', flush=True)\ngr.serve(A)\n"
    environment = os.environ | {"GREENROOM_HOST": f"unix:{tmp_path}/nobody.sock"}
    host = subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert host.stdout is not None and host.stderr is not None
    host.stdout.readline()
    while b"dialling again" not in host.stderr.readline():
        pass
    host.send_signal(signal.SIGTERM)
    # Who waits for a node to the end is told that there was none, and ends with 1.
    assert host.wait() == 0


async def test_a_host_of_which_nothing_is_taken_says_why_and_ends(greenroom_node: Program) -> None:
    class Topics(gr.Actor, kind="topics"):
        async def run(self) -> None: ...

    host = greenroom_node.host(Topics)
    with pytest.raises(gr.NotLetIn, match="topics is refused"):
        await host.start()
        await host.run()
    async with greenroom_node.host(Topics, Patient) as good:
        assert await good.ref(Patient, "q", by=30).heard() is False
