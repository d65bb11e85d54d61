"""Persistent actors in TypeScript count, while their hosts and their node are killed and frozen and lanes are cut: no save that was
acknowledged is lost, and no total goes back.

`GREENROOM_KILL_SECONDS` says for how long; `cargo xtask kills --hosts` sets it.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from cuts import Relay

from greenroom.testing import Program

PROBE = Path(__file__).parents[2] / "typescript/dist/probe/probe.js"
REQUIRED = os.environ.get("GREENROOM_LANGUAGES") == "all"
MISSING = [
    what
    for what, found in (
        ("GREENROOM_BIN", os.environ.get("GREENROOM_BIN")),
        ("npm run build in sdk/typescript", shutil.which("node") and PROBE.exists()),
    )
    if not found
]
LASTING = float(os.environ.get("GREENROOM_KILL_SECONDS", "20"))
LEASE = 1.0
COUNTERS = 6
ADDED_MIN = 50
HANG = 120.0
"""Far more than it takes until all answer again."""


class Counting:
    """A node with its states on disk, two hosts that come through a relay and by the socket, and a client a counter."""

    def __init__(self, directory: Path) -> None:
        config = directory / "node.toml"
        config.write_text(f'store = "sqlite:{directory}/states.db"\n[hosts]\nlease = {LEASE}\n')
        self.node = Program("--config", str(config), "--shards", "2", name="n", directory=directory)
        self.relay = Relay(self.node.http)
        self.ways = [self.relay.url, self.node.url]
        self.hosts = [self._host(way) for way in self.ways]
        self.stopped = threading.Event()
        self.answered, self.tried = [0] * COUNTERS, [0] * COUNTERS
        self.wrong: list[str] = []

    def _host(self, way: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["node", str(PROBE)], env=os.environ | {"GREENROOM_HOST": way}, stderr=subprocess.DEVNULL)

    def call(self, counter: int, method: str, body: bytes) -> int | None:
        headers = {"greenroom-timeout": "3s", "content-type": "application/json"}
        request = urllib.request.Request(f"{self.node.http}/typescript_persistent/{counter}/{method}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.loads(answer.read())
        except OSError:
            return None

    def read(self, counter: int) -> int:
        until = time.monotonic() + HANG
        while (total := self.call(counter, "get", b"{}")) is None:
            assert time.monotonic() < until, f"counter {counter} is not answered"
            time.sleep(0.05)
        return total

    def drive(self, counter: int) -> None:
        """Adds one by one: each answer is above all that were heard before, and not above what was tried."""
        while not self.stopped.is_set():
            self.tried[counter] += 1
            before = self.answered[counter]
            total = self.call(counter, "add", b'{"n": 1}')
            if total is None:
                time.sleep(0.02)
                continue
            if not before < total <= self.tried[counter]:
                self.wrong.append(f"counter {counter} answers {total} after {before}, of {self.tried[counter]} tries")
            self.answered[counter] = max(before, total)

    def kill_host(self, place: int) -> None:
        self.hosts[place].kill()
        self.hosts[place].wait()
        self.hosts[place] = self._host(self.ways[place])

    def freeze_host(self, place: int) -> None:
        self.hosts[place].send_signal(signal.SIGSTOP)
        time.sleep(2.5 * LEASE)
        self.hosts[place].send_signal(signal.SIGCONT)

    def kill_node(self) -> None:
        self.node.kill()
        time.sleep(0.2)
        self.node.restart()

    def stop(self) -> None:
        for host in self.hosts:
            host.send_signal(signal.SIGCONT)
            host.kill()
            host.wait()
        self.relay.stop()
        self.node.stop()


@pytest.fixture
def counting() -> Iterator[Counting]:
    # In memory where that can be: a slow disk holds up writes for longer than a lease lasts.
    memory = Path("/dev/shm")
    directory = tempfile.mkdtemp(prefix="greenroom-", dir=memory if memory.is_dir() else None)
    counting = Counting(Path(directory))
    yield counting
    counting.stop()
    shutil.rmtree(directory)


@pytest.mark.skipif(bool(MISSING) and not REQUIRED, reason=f"no {' and no '.join(MISSING)}")
def test_no_save_in_typescript_is_lost_and_no_total_goes_back(counting: Counting) -> None:
    chance = Random(LASTING)
    for counter in range(COUNTERS):
        assert counting.read(counter) == 0
    clients = [threading.Thread(target=counting.drive, args=(counter,)) for counter in range(COUNTERS)]
    for client in clients:
        client.start()
    begun, done = time.monotonic(), Counter[str]()
    try:
        for fault in itertools.cycle(("cut", "kill host", "cut", "freeze host", "cut", "kill node")):
            time.sleep(chance.uniform(0.3, 1.5))
            is_over = time.monotonic() - begun > LASTING and sum(counting.answered) >= ADDED_MIN
            if is_over or counting.wrong or time.monotonic() - begun > LASTING + HANG:
                break
            match fault:
                case "cut":
                    done["lanes cut"] += counting.relay.cut(chance)
                case "kill host":
                    counting.kill_host(chance.randrange(2))
                case "freeze host":
                    counting.freeze_host(chance.randrange(2))
                case _:
                    counting.kill_node()
            done[fault] += 1
    finally:
        counting.stopped.set()
        for client in clients:
            client.join()
    counting.kill_node()
    totals = [counting.read(counter) for counter in range(COUNTERS)]
    lost = sum(max(0, answered - total) for answered, total in zip(counting.answered, totals, strict=True))
    print(f"{sum(totals)} additions of {sum(counting.tried)} tries, {dict(done)}: lost {lost}, went back {len(counting.wrong)}")
    assert (lost, counting.wrong) == (0, [])
    assert all(total <= tried for total, tried in zip(totals, counting.tried, strict=True))
    assert sum(totals) >= ADDED_MIN and done["lanes cut"] > 0
