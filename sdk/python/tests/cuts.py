"""A relay before the doors of nodes, whose connections are cut on command: for lanes of real hosts."""

from __future__ import annotations

import socket
import threading
from random import Random
from urllib.parse import urlsplit


class Relay:
    """What comes to `url` goes to the door of a node."""

    def __init__(self, door: str) -> None:
        self._to = urlsplit(door).netloc.split(":")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, chance: Random) -> int:
        """Breaks each connection with a chance of a half, so a host loses some lanes and keeps others; how many."""
        with self._lock:
            pairs = [pair for pair in self._open if chance.random() < 0.5]
            self._open = [pair for pair in self._open if pair not in pairs]
        for pair in pairs:
            _break(pair)
        return len(pairs)

    def stop(self) -> None:
        self._listener.close()
        with self._lock:
            pairs, self._open = self._open, []
        for pair in pairs:
            _break(pair)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection((self._to[0], int(self._to[1])), 5)
            except OSError:
                if self._listener.fileno() < 0:
                    return
                continue
            for end in (near, far):
                end.settimeout(None)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pair = (near, far)
            with self._lock:
                self._open.append(pair)
            for source, drain in (pair, pair[::-1]):
                threading.Thread(target=self._carry, args=(source, drain, pair), daemon=True).start()

    def _carry(self, source: socket.socket, drain: socket.socket, pair: tuple[socket.socket, socket.socket]) -> None:
        try:
            while data := source.recv(1 << 16):
                drain.sendall(data)
        except OSError:
            pass
        _break(pair)
        with self._lock:
            self._open = [known for known in self._open if known is not pair]


def _break(pair: tuple[socket.socket, socket.socket]) -> None:
    for end in pair:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        end.close()
