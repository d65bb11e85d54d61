"""Money moves between reliable actors in Python and in Go, while their hosts and nodes are killed and frozen, and lanes cut: each payment
is made once.

`GREENROOM_KILL_SECONDS` says for how long; `cargo xtask kills --hosts` sets it. Then clients also set reminders, each of which rings, and
messages kill the hosts that run them, until they are parked.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from cuts import Relay
from troubles import ATTEMPTS_MAX, Alarms, Poison, until

from greenroom.testing import Program

HERE = Path(__file__).parent
REQUIRED = os.environ.get("GREENROOM_LANGUAGES") == "all"
MISSING = [
    what
    for what, found in (("GREENROOM_BIN", os.environ.get("GREENROOM_BIN")), ("Go 1.26", shutil.which("go")))
    if not found
]
LASTING = float(os.environ.get("GREENROOM_KILL_SECONDS", "20"))
HAS_TROUBLES = "GREENROOM_KILL_SECONDS" in os.environ
"""True if reminders ring and messages kill their hosts beside the payments."""
LEASE = 1.0
"""Seconds that a host may act after it last asked."""
PURSES = 10
"""Of each language."""
CLIENTS = 6
PAYMENTS_MIN = 50
POISON_EVERY = 60.0
"""Seconds from one message that kills its hosts to the next."""
POISONED = 9
"""The status with which such a message ends its host."""
HANG = 120.0
"""Far more than it takes until all answer again."""


@dataclass
class Cluster:
    """Two nodes over one journal, and two hosts of each language that dial both: the first by their sockets, the second through relays."""

    directory: Path
    nodes: list[Program] = field(default_factory=list[Program])
    commands: list[list[str]] = field(default_factory=list[list[str]])
    hosts: list[subprocess.Popen[bytes]] = field(default_factory=list[subprocess.Popen[bytes]])
    relays: list[Relay] = field(default_factory=list[Relay])
    deaths: int = 0
    """Hosts that messages have killed."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while hosts are replaced."""
    chance: Random = field(default_factory=lambda: Random(LASTING))

    def start(self) -> None:
        config = self.directory / "node.toml"
        at = f"sqlite:{self.directory}"
        config.write_text(
            f'table = "{at}/table.db"\nstore = "{at}/states.db"\n[reliable]\njournal = "{at}/journal.db"\npartitions = 16\n[hosts]\nlease = {LEASE}\n'
        )
        purse = str(self.directory / "purse")
        subprocess.run(["go", "-C", str(HERE / "../../go"), "build", "-o", purse, "./testdata/purse"], check=True)
        flags = ["--listen", "127.0.0.1:0", "--shards", "1", "--config", str(config)]
        self.nodes = [Program(*flags, name=name, directory=self.directory) for name in ("a", "b")]
        self.relays = [Relay(node.http) for node in self.nodes]
        self.commands = [[sys.executable, str(HERE / "purse.py")], [purse]] * 2
        self.hosts = [self._host(place) for place in range(len(self.commands))]

    def _host(self, place: int) -> subprocess.Popen[bytes]:
        ways = ",".join(way.url for way in (self.nodes if place < 2 else self.relays))
        return subprocess.Popen(self.commands[place], env=os.environ | {"GREENROOM_HOST": ways})

    def cut_lanes(self, place: int) -> None:
        self.relays[place].cut(self.chance)

    def kill_node(self, place: int) -> None:
        self.nodes[place].kill()
        time.sleep(0.2)
        self.nodes[place].restart()

    def kill_host(self, place: int) -> None:
        with self.lock:
            self.hosts[place].kill()
            self.hosts[place].wait()
            self.hosts[place] = self._host(place)

    def revive(self, stopped: threading.Event) -> None:
        """Replaces each host that ends, as a supervisor does."""
        while not stopped.wait(0.1):
            with self.lock:
                for place, host in enumerate(self.hosts):
                    if (status := host.poll()) is not None:
                        self.deaths += status == POISONED
                        self.hosts[place] = self._host(place)

    def freeze_host(self, place: int) -> None:
        """Past its lease: its actors are made anew in another host, and then it wakes."""
        host = self.hosts[place]
        host.send_signal(signal.SIGSTOP)
        time.sleep(2.5 * LEASE)
        host.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        for host in self.hosts:
            host.send_signal(signal.SIGCONT)
            host.kill()
            host.wait()
        for relay in self.relays:
            relay.stop()
        for node in self.nodes:
            node.stop()


class Bank:
    """Clients that pay through the doors of the nodes, each payment again until it is answered."""

    def __init__(self, cluster: Cluster) -> None:
        self.doors = [node.http for node in cluster.nodes]
        self.orders = itertools.count()
        self.answered: list[str] = []
        self.repeats = 0
        self.refusals = dict[str, str]()
        """Why a call was last not answered, by its path."""
        self.stopped = threading.Event()
        self.failed: list[BaseException] = []

    def call(self, door: int, path: str, arguments: dict[str, Any], key: str | None = None) -> tuple[Any] | None:
        """The answer, which may be null, or `None` if there is none."""
        headers = {"greenroom-timeout": "3s", "content-type": "application/json"} | ({"idempotency-key": key} if key else {})
        request = urllib.request.Request(f"{self.doors[door % 2]}/{path}", json.dumps(arguments).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return (json.loads(answer.read()),)
        except urllib.error.HTTPError as error:
            # A reliable turn that loses its host runs again: nobody hears that it has failed, before it has lost as many hosts as a message may.
            said = error.read()
            is_blamed = HAS_TROUBLES and b"have died during its turn" in said
            assert error.code != 500 or "_purse/" not in path or is_blamed, said
            self.refusals[path] = f"{error.code} {said!r}"
            return None
        except OSError as error:
            self.refusals[path] = repr(error)
            return None

    def insist(self, path: str, arguments: dict[str, Any], key: str | None = None) -> Any:
        until = time.monotonic() + HANG
        for door in itertools.count():
            if (answer := self.call(door, path, arguments, key)) is not None:
                return answer[0]
            assert time.monotonic() < until, f"{path} {arguments} is not answered: {self.refusals.get(path)}"
            self.repeats += 1
            time.sleep(0.05)

    def drive(self, client: int) -> None:
        chance = Random(client)
        try:
            while not self.stopped.is_set():
                order = f"order {next(self.orders)}"
                kind, key, to = chance.choice(("py", "go")), chance.randrange(PURSES), chance.randrange(PURSES)
                arguments = {"order": order, "to": str(to), "coins": chance.randint(1, 100)}
                self.insist(f"{kind}_purse/{key}/pay", arguments, order)
                self.answered.append(order)
        except BaseException as error:
            self.failed.append(error)

    def books(self) -> tuple[int, Counter[str], Counter[str]]:
        """All coins, and how often each order was paid and got."""
        coins, paid, got = 0, Counter[str](), Counter[str]()
        for kind, number in itertools.product(("py", "go"), range(PURSES)):
            shown = self.insist(f"{kind}_purse/{number}/look", {})
            coins += shown["coins"]
            paid.update(shown["paid"] or {})
            got.update(shown["got"] or {})
        return coins, paid, got


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    # In memory where that can be: a slow disk holds up writes for longer than a lease lasts.
    memory = Path("/dev/shm")
    directory = tempfile.mkdtemp(prefix="greenroom-", dir=memory if memory.is_dir() else None)
    cluster = Cluster(Path(directory))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(directory)


@pytest.mark.skipif(bool(MISSING) and not REQUIRED, reason=f"no {' and no '.join(MISSING)}")
def test_each_payment_between_python_and_go_is_made_once(cluster: Cluster) -> None:
    bank, chance = Bank(cluster), Random(LASTING)
    alarms, poison = Alarms(bank), Poison(bank)
    bank.insist("py_purse/0/look", {})
    bank.insist("go_purse/0/look", {})
    clients = [threading.Thread(target=bank.drive, args=(client,)) for client in range(CLIENTS)]
    if HAS_TROUBLES:
        clients.append(threading.Thread(target=alarms.drive, args=(CLIENTS,)))
    ended = threading.Event()
    supervisor = threading.Thread(target=cluster.revive, args=(ended,))
    for thread in (*clients, supervisor):
        thread.start()
    begun, done = time.monotonic(), Counter[str]()
    try:
        # Hosts of both languages are at even and at odd places.
        faults = itertools.cycle(
            (cluster.kill_host, cluster.cut_lanes, cluster.freeze_host, cluster.cut_lanes, cluster.kill_host, cluster.kill_node)
        )
        is_over = lambda: time.monotonic() - begun > LASTING and len(bank.answered) >= PAYMENTS_MIN  # noqa: E731
        while not is_over() and not bank.failed and time.monotonic() - begun < LASTING + HANG:
            if HAS_TROUBLES and time.monotonic() - begun >= poison.sent * POISON_EVERY:
                poison.send()
            if HAS_TROUBLES:
                poison.operate()
            time.sleep(chance.uniform(0.3, 1.5))
            fault = next(faults)
            fault(chance.randrange(4 if fault in (cluster.kill_host, cluster.freeze_host) else 2))
            done[fault.__name__] += 1
        bank.stopped.set()
        for client in clients:
            client.join()
        assert bank.failed == []
        for place in range(2):
            cluster.kill_node(place)

        def is_settled() -> bool:
            poison.operate()
            _, paid, got = bank.books()
            return paid == got and len(poison.seen) == poison.sent and not alarms.silent()

        until(is_settled, HANG)
    finally:
        bank.stopped.set()
        for client in clients:
            client.join()
        ended.set()
        supervisor.join()
    coins, paid, got = bank.books()
    silent = alarms.silent()
    lost = [order for order in bank.answered if order not in paid or order not in got]
    doubled = [order for order, times in (paid + got).items() if times != 2]
    print(
        f"{len(bank.answered)} payments, {bank.repeats} calls made again, {dict(done)}: lost {len(lost)}, doubled {len(doubled)}; "
        f"{len(alarms.answered)} reminders: silent {len(silent)}; {poison.sent} messages that kill, {cluster.deaths} hosts dead of them: "
        f"parked {len(poison.seen)}; {poison.retried} others parked and retried"
    )
    assert (lost, doubled, coins) == ([], [], 0)
    assert paid == got and len(paid) == len(bank.answered) >= PAYMENTS_MIN
    assert silent == [] and bool(alarms.answered) == HAS_TROUBLES
    assert len(poison.seen) == poison.sent and bool(poison.sent) == HAS_TROUBLES
    assert cluster.deaths <= ATTEMPTS_MAX * poison.sent
