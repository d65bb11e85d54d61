"""The gRPC door from grpcio: services and messages of a kind, written by `greenroom generate --lang proto` and compiled by protoc."""
# pyright: basic, reportMissingTypeStubs=false, reportMissingModuleSource=false, reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

import importlib
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import greenroom as gr
from greenroom.testing import Program, free_port

REQUIRED = os.environ.get("GREENROOM_LANGUAGES") == "all"
try:
    import grpc as _grpc
    from grpc_tools import protoc as _protoc
except ImportError:
    _grpc = _protoc = None
grpc: Any = _grpc
protoc: Any = _protoc

pytestmark = [
    pytest.mark.skipif("GREENROOM_BIN" not in os.environ and not REQUIRED, reason="no program: set GREENROOM_BIN"),
    pytest.mark.skipif(grpc is None and not REQUIRED, reason="no grpcio: pip install grpcio-tools"),
]


class Line(msgspec.Struct):
    user: str
    text: str
    stars: int | None = None


class NotMember(gr.ActorError):
    user: str


class Guestbook(gr.Actor):
    lines: list[Line] = []

    async def sign(self, line: Line, tags: list[str], times: int = 1) -> int:
        if line.user == "stranger":
            raise NotMember(user=line.user)
        self.lines.extend([Line(line.user, " ".join([line.text, *tags]), line.stars)] * times)
        return len(self.lines)

    @gr.read
    async def read(self, start: int = 0) -> AsyncIterator[Line]:
        for line in self.lines[start:]:
            yield line

    @gr.read
    async def large(self) -> int:
        return 2**53 + 1


def generated(node: Program, out: Path) -> None:
    command = [os.environ["GREENROOM_BIN"], "generate", "--lang", "proto", "--kind", "guestbook", "--node", node.http, "--out", str(out)]
    subprocess.run(command, check=True)


def compiled(out: Path) -> Path:
    """The modules of what was generated, beside it, and its descriptors."""
    descriptors = out / "kinds.pb"
    files = ["guestbook.proto", "greenroom_kind.proto"]
    words = ["protoc", f"-I{out}", f"-I{Path(protoc.__file__).parent}/_proto", f"--python_out={out}", f"--grpc_python_out={out}"]
    assert protoc.main([*words, "--include_imports", f"--descriptor_set_out={descriptors}", *files]) == 0
    return descriptors


async def test_a_kind_is_called_by_a_service_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    node = Program(directory=tmp_path)
    async with node.host(Guestbook):
        generated(node, out)
        first = (out / "guestbook.proto").read_text()
        generated(node, out)
        assert (out / "guestbook.proto").read_text() == first
    node.stop()
    descriptors = compiled(out)
    monkeypatch.syspath_prepend(str(out))
    messages: Any = importlib.import_module("guestbook_pb2")
    service: Any = importlib.import_module("guestbook_pb2_grpc")

    address = f"127.0.0.1:{free_port()}"
    node = Program("--grpc", address, "--grpc-services", str(descriptors), directory=tmp_path)
    async with node.host(Guestbook), grpc.aio.insecure_channel(address) as channel:
        book = service.GuestbookStub(channel)
        line = messages.Line(user="ada", text="hi", stars=3)
        signed = messages.SignArguments(line=line, tags=["a", "b"])
        reply = await book.Sign(messages.SignRequest(key="x", arguments=signed), wait_for_ready=True)
        assert reply.value == 1
        # What is zero or empty is sent, what is not set is left out.
        empty = messages.SignArguments(line=messages.Line(user="", text=""), times=2)
        assert (await book.Sign(messages.SignRequest(key="x", arguments=empty))).value == 3
        items = [item.value async for item in book.Read(messages.ReadRequest(key="x"))]
        assert [(item.user, item.text, item.stars, item.HasField("stars")) for item in items] == [
            ("ada", "hi a b", 3, True), ("", "", 0, False), ("", "", 0, False),
        ]  # fmt: skip
        assert (await book.Large(messages.LargeRequest(key="x"))).value == 2**53 + 1

        stranger = messages.SignArguments(line=messages.Line(user="stranger"))
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await book.Sign(messages.SignRequest(key="x", arguments=stranger))
        assert refused.value.code() == grpc.StatusCode.FAILED_PRECONDITION
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await book.Sign(messages.SignRequest(arguments=signed))
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    node.stop()


def test_descriptors_of_something_else_are_refused_by_name(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pb"
    wrong.write_bytes(b"no descriptors")
    command = [os.environ["GREENROOM_BIN"], "node", "--grpc", "127.0.0.1:0", "--grpc-services", str(wrong), "--hosts", "off"]
    ended = subprocess.run([*command, "--until-stdin-ends"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert ended.returncode != 0 and "greenroom generate --lang proto" in ended.stderr, ended.stderr


