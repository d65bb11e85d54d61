"""Tests of actors against the real program: a node of its own for each, and the test's kinds in the test's process.

    async def test_a_room(greenroom_node):
        async with greenroom_node.host(ChatRoom) as host:
            assert await host.ref(ChatRoom, "lobby").post("ada", "hi") == 1

The program is that of `GREENROOM_BIN`, or `greenroom` in `PATH`.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .actor import Actor
from .host import Host


class Program:
    """A node: a process of the real program, which ends with the test's."""

    def __init__(self, *flags: str, name: str = "node", directory: Path | None = None) -> None:
        program = os.environ.get("GREENROOM_BIN") or shutil.which("greenroom")
        if program is None:
            raise FileNotFoundError("there is no greenroom program: set GREENROOM_BIN, or put it into PATH")
        self._made = None if directory else tempfile.TemporaryDirectory(prefix="greenroom-")
        self.directory = directory or Path(self._made.name if self._made else ".")
        self.name = name
        self.http = f"http://127.0.0.1:{free_port()}"
        self._command = [program, "node", "--name", name, "--http", self.http.removeprefix("http://")]
        self._command += ["--without-examples", "--until-stdin-ends", *flags]
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {"RUST_LOG": "warn"} | os.environ | {"XDG_RUNTIME_DIR": str(self.directory)}
        process = subprocess.Popen(self._command, stdin=subprocess.PIPE, env=environment)
        until = time.monotonic() + 30
        while not self.socket.exists():
            if process.poll() is not None or time.monotonic() > until:
                process.kill()
                raise RuntimeError(f"{' '.join(self._command)} did not open {self.socket}")
            time.sleep(0.005)
        return process

    @property
    def socket(self) -> Path:
        return self.directory / "greenroom" / f"{self.name}.sock"

    @property
    def url(self) -> str:
        """Its way in for hosts and clients."""
        return f"unix:{self.socket}"

    def host(self, *kinds: type[Actor], **options: Any) -> Host:
        """A host of kinds in this process: `async with node.host(ChatRoom) as host`."""
        return Host(list(kinds), self.url, **options)

    def client(self) -> Host:
        """A client: `async with node.client() as client`."""
        return Host([], self.url)

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Ends it at once, as a machine's failure does."""
        self.process.kill()
        self.process.wait()
        self.socket.unlink(missing_ok=True)

    def restart(self) -> None:
        """Starts it again, with the same flags."""
        if self.process.poll() is None:
            self.kill()
        self.process = self._start()

    def stop(self) -> None:
        if self.process.poll() is None:
            if self.process.stdin is not None:
                self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self._made is not None:
            self._made.cleanup()


@pytest.fixture
def greenroom_node() -> Iterator[Program]:
    """A node of its own for the test."""
    node = Program()
    yield node
    node.stop()


def free_port() -> int:
    """A free port, from below those that systems give to connections: one is still there for a node that comes back."""
    while True:
        port = random.randrange(20_000, 32_768)
        with socket.socket() as found, contextlib.suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
