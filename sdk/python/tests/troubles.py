"""What goes on beside payments while hosts and nodes are killed: reminders that clients set, and messages that kill their hosts."""

from __future__ import annotations

import itertools
import json
import threading
import time
import urllib.request
from random import Random
from typing import Any, Protocol
from urllib.parse import quote

ALARMS = 6
"""Actors that have reminders."""
ALARM_AFTER_MAX = 3.0
"""Seconds after which a reminder is due, at most."""
ATTEMPTS_MAX = 3
"""Deaths of hosts after which a message is parked, as nodes have it by default."""


class Caller(Protocol):
    """Calls at the HTTP endpoints of nodes, each again until it is answered."""

    doors: list[str]
    stopped: threading.Event
    failed: list[BaseException]

    def insist(self, path: str, arguments: dict[str, Any], key: str | None = None) -> Any: ...


class Alarms:
    """Clients that set one-shot reminders. Each reminder whose setting was answered rings at least once."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.numbers = itertools.count()
        self.answered: list[tuple[int, str]] = []

    def drive(self, client: int) -> None:
        chance = Random(client)
        try:
            while not self.caller.stopped.is_set():
                actor, name = chance.randrange(ALARMS), f"alarm {next(self.numbers)}"
                self.caller.insist(f"py_alarm/{actor}/set", {"name": name, "after": chance.uniform(1, ALARM_AFTER_MAX)})
                self.answered.append((actor, name))
                self.caller.stopped.wait(0.1)
        except BaseException as error:
            self.caller.failed.append(error)

    def silent(self) -> list[str]:
        """Reminders that were set and have not rung."""
        rung = {actor: self.caller.insist(f"py_alarm/{actor}/look", {}) for actor in range(ALARMS)}
        return [name for actor, name in self.answered if name not in rung[actor]]


class Poison:
    """Reliable messages whose turn kills its host. Each is parked after a few deaths, and the operator drops it."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.sent = 0
        self.seen: set[str] = set()
        self.retried = 0

    def send(self) -> None:
        """Lets a purse send one, to an actor of its own."""
        order = f"poison {self.sent}"
        self.caller.insist("py_purse/0/poison", {"to": str(self.sent)}, order)
        self.sent += 1

    def operate(self) -> None:
        """Drops parked messages that are poison, and retries others, which were running in a host each time when it died."""
        for message in self._parked():
            place = f"{message['partition']}/{{}}/{quote(message['slot'], safe='')}"
            if message["to"].startswith("py_poison/"):
                self.seen.add(message["to"])
                self._post(place.format("drop"))
            else:
                self.retried += self._post(place.format("retry"))

    def _parked(self) -> list[dict[str, Any]]:
        for door in self.caller.doors:
            try:
                with urllib.request.urlopen(f"{door}/-/reliable/parked", timeout=10) as answer:
                    return json.loads(answer.read())["parked"]
            except OSError:
                continue
        return []

    def _post(self, place: str) -> bool:
        request = urllib.request.Request(f"{self.caller.doors[0]}/-/reliable/{place}", b"", method="POST")
        try:
            with urllib.request.urlopen(request, timeout=10):
                return True
        except OSError:
            # It is asked for again when it still lies there.
            return False


def until(condition: Any, seconds: float) -> bool:
    """Waits for a condition, and returns whether it came true."""
    end = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.2)
    return bool(met)
