"""Ways in: the Unix socket of a node, or its HTTP door by `Upgrade`."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import ssl
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from . import frames


class NoNode(Exception):
    """There is no node to dial; the message says what to start."""


class NotLetIn(Exception):
    """The node refuses the host, or this program is wrong about it: dialling again does not help."""


@dataclass(frozen=True)
class Way:
    """One way in."""

    url: str
    token: str | None = None

    def __post_init__(self) -> None:
        scheme, colon, rest = self.url.partition(":")
        if scheme not in ("unix", "http", "https") or not colon or not rest.strip("/") or not self._is_address():
            raise NoNode(f"{self.url!r} is no way in: write unix:/PATH, or http://HOST:PORT of a node's door")
        if self.token and self.is_in_the_clear:
            raise NoNode(f"{self.url} is plain HTTP, where others could read the token; write https://")

    def _is_address(self) -> bool:
        try:
            return self.is_unix or bool(self.address[0])
        except ValueError:
            return False  # Of the port.

    @property
    def is_unix(self) -> bool:
        return self.url.startswith("unix:")

    @property
    def is_tls(self) -> bool:
        return self.url.startswith("https:")

    @property
    def is_in_the_clear(self) -> bool:
        """True if what is sent crosses a network without encryption."""
        return not self.is_unix and not self.is_tls and not _is_loopback(self.address[0])

    @property
    def path(self) -> str:
        return self.url.removeprefix("unix:")

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or (443 if self.is_tls else 80)

    def dial(self, timeout: float) -> socket.socket:
        """A connected socket, closed when another program begins; blocks."""
        if self.is_unix:
            found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                found.settimeout(timeout)
                found.connect(self.path)
            except BaseException:
                found.close()
                raise
        else:
            found = socket.create_connection(self.address, timeout)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return found

    def secure(self, plain: socket.socket) -> socket.socket:
        """The same, with TLS if the way says so; for blocking use."""
        return ssl.create_default_context().wrap_socket(plain, server_hostname=self.address[0]) if self.is_tls else plain

    def request(self) -> bytes:
        """What is sent before the first frame."""
        if self.is_unix:
            return b""
        host, port = self.address
        named = f"[{host}]" if ":" in host else host
        token = f"Authorization: Bearer {self.token}\r\n" if self.token else ""
        return (
            f"GET /-/host HTTP/1.1\r\nHost: {named}:{port}\r\nConnection: Upgrade\r\n"
            f"Upgrade: greenroom-host/1\r\n{token}\r\n"
        ).encode()

    def answer(self) -> Callable[[bytes], bytes | None] | None:
        """Takes what comes before the first frame: given bytes, it gives those of frames, or `None` if that is not over."""
        if self.is_unix:
            return None
        head = bytearray()

        def take(data: bytes) -> bytes | None:
            head.extend(data)
            end = head.find(b"\r\n\r\n")
            if end < 0:
                if len(head) > 16 << 10:
                    raise frames.FrameError("the door's answer has no end")
                return None
            first = bytes(head).split(b"\r\n", 1)[0].decode("latin-1")
            if " 101 " not in first:
                raise NotLetIn(f"{self.url} does not let hosts in: {first}")
            return bytes(head[end + 4 :])

        return take


def find(given: str | None = None, token: str | None = None) -> list[Way]:
    """The ways in: those that are given, those of `GREENROOM_HOST`, or that of the one node that listens at a socket here."""
    named = given or os.environ.get("GREENROOM_HOST", "")
    token = header_token(token or os.environ.get("GREENROOM_TOKEN") or "")
    if named:
        ways = [Way(url.strip(), token) for url in named.split(",") if url.strip()]
        if not ways:
            raise NoNode(f"{named!r} names no way in: write unix:/PATH, or http://HOST:PORT of a node's door")
        return ways
    directory = runtime_directory()
    sockets = sorted(path for path in directory.glob("*.sock") if _is_ours(path)) if directory.is_dir() else []
    alive = [path for path in sockets if _listens(path)]
    if len(alive) == 1:
        return [Way(f"unix:{alive[0]}", token)]
    names = ", ".join(f"unix:{path}" for path in alive or sockets)
    if alive:
        raise NoNode(f"several nodes have sockets here: set GREENROOM_HOST to one of {names}, or to several by commas")
    why = f"no node listens at {names}, which dead ones have left" if sockets else f"no node has a socket in {directory}"
    raise NoNode(
        f"{why}: start one by `greenroom node`, run this program by `greenroom run python PROGRAM`, or set GREENROOM_HOST to "
        "unix:/PATH or http://HOST:PORT"
    )


def header_token(text: str) -> str | None:
    """The token in `text` as a header carries it: secrets end in a newline, editors put a byte order mark in front."""
    token = text.lstrip("\ufeff").strip()
    if any(not "!" <= each <= "~" for each in token):
        raise NoNode("the token of this program is none: it has spaces, or characters that no token has")
    return token or None


def _is_loopback(host: str) -> bool:
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host.lower() == "localhost"
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback


def runtime_directory() -> Path:
    """Where nodes of this user have their sockets."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    return Path(base) / "greenroom" if base else Path(f"/tmp/greenroom-{os.geteuid()}")


def _listens(path: Path) -> bool:
    """Whether somebody listens there, who is told nothing of this: a socket of another type is refused only after it is looked up."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            return probe.connect_ex(str(path)) == errno.EPROTOTYPE
        except OSError:
            return False  # The path is too long for a socket.


def _is_ours(path: Path) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_uid in (os.geteuid(), 0)
