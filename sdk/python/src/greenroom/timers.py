"""The timers that an activation has, as far as its host knows."""

from __future__ import annotations

import math
import time

from .errors import Refused

TIMERS_MAX = 256
"""Timers of one activation; the node refuses further ones."""


class Timers:
    """Names of timers, each with the time by which a timer that fires once has fired."""

    __slots__ = ("_until",)

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def add(self, name: str, after: float | None) -> None:
        """Adds a timer that fires once after so many seconds, or in each period; raises `Refused` if there is no room for it."""
        if len(self._until) >= TIMERS_MAX:
            now = time.monotonic()
            self._until = {name: until for name, until in self._until.items() if until > now}
        if len(self._until) >= TIMERS_MAX:
            raise Refused("Overloaded", {"queue": "the timers of this actor", "bound": TIMERS_MAX})
        self._until[name] = math.inf if after is None else time.monotonic() + after

    def discard(self, name: str) -> None:
        """Forgets a timer that was cancelled."""
        self._until.pop(name, None)
