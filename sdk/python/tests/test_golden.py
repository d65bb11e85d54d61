"""The frames that all SDKs write and read alike: `sdk/golden.json`."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from greenroom import Refused, frames
from greenroom.control import Welcome, goodbye
from greenroom.frames import FrameError, Reader, Splitter, block, frame, text, varint
from greenroom.lane import call_frame
from greenroom.refs import carried, with_seat

GOLDEN = Path(__file__).parents[2] / "golden.json"
FRAMES: list[dict[str, Any]] = json.loads(GOLDEN.read_text())["frames"]


def of(side: str) -> list[Any]:
    return [pytest.param(golden, id=golden["name"]) for golden in FRAMES if golden["from"] == side]


@pytest.mark.parametrize("golden", of("host"))
def test_what_a_host_writes(golden: dict[str, Any]) -> None:
    written = write(golden["frame"], golden["body"])
    if written is None:
        pytest.skip("in entries: for reliable kinds")
    assert written.hex() == golden["hex"]


def test_what_a_call_carries_along() -> None:
    golden = next(golden for golden in FRAMES if golden["name"] == "call_with_an_idempotency_key")
    assert carried({"k": "v"}, "17") == block(bytes.fromhex(golden["body"]["extension"]))
    assert carried(None) == carried({}) == block(b"")
    golden = next(golden for golden in FRAMES if golden["name"] == "call_of_a_hook")
    seat: Any = SimpleNamespace(number=300)
    assert with_seat(carried({"k": "v"}), seat, None) == block(bytes.fromhex(golden["body"]["extension"]))
    assert with_seat(carried({"k": "v"}), None, None) == carried({"k": "v"})
    with pytest.raises(Refused, match="16 KiB"):
        carried({"k": "v" * frames.CARRIED_MAX})


def write(name: str, body: dict[str, Any]) -> bytes | None:
    payload = bytes.fromhex(body.get("payload", ""))

    def number(name: str) -> bytes:
        return varint(body[name])

    def byte(name: str) -> bytes:
        return bytes((body[name],))

    match name:
        case "Hello":
            what = {key: body["map"][key] for key in HELLO if key in body["map"]}
            if "ended" in what:
                what["ended"] = {"session": what["ended"]["session"], "secret": bytes.fromhex(what["ended"]["secret"])}
            what["offers"] = [{key: offer[key] for key in OFFER} for offer in what["offers"]]
            return frame(frames.HELLO, b"GRHP\1\0\1\0", frames.bare_map(what))
        case "Describe":
            return frame(frames.DESCRIBE, text(body["kind"]), number("version"), bytes.fromhex(body["json"]))
        case "Alive":
            return frame(frames.ALIVE, number("number"))
        case "Drain":
            return frame(frames.DRAIN)
        case "Goodbye":
            return goodbye(body["code"], body["reason"])
        case "LaneDropped":
            return frame(frames.LANE_DROPPED, number("shard"))
        case "Join":
            what = {"session": body["map"]["session"], "secret": bytes.fromhex(body["map"]["secret"])}
            return frame(frames.JOIN, b"GRHP\1\0", frames.bare_map(what | {"shard": body["map"]["shard"]}))
        case "Activated":
            return frame(frames.ACTIVATED, number("seat"), byte("status"), payload)
        case "Released":
            return frame(frames.RELEASED, number("seat"), byte("status"), payload)
        case "TurnEnd":
            if body["jump"]:
                return None
            return frame(frames.TURN_END, number("turn"), byte("status"), b"\0", payload)
        case "Define":
            return frame(frames.DEFINE, number("route"), text(body["kind"]), text(body["method"]), number("version"))
        case "Call":
            if body["turn"]:
                return None
            laden = block(bytes.fromhex(body["extension"]))
            return call_frame(body["request"], None, number("route"), text(body["key"]), body["left_us"], laden, payload)
        case "CancelCall":
            return frame(frames.CANCEL_CALL, number("request"))
        case "Ask":
            return frame(frames.ASK, number("request"), number("turn"), number("seat"), byte("operation"), payload)
        case "StreamItem":
            return frame(frames.STREAM_ITEM, number("stream"), number("number"), payload)
        case "StreamCredit":
            return frame(frames.STREAM_CREDIT, number("stream"), number("window"), number("consumed"))
        case "StreamEnd":
            return frame(frames.STREAM_END, number("stream"), number("number"), byte("status"), payload)
        case _:
            raise AssertionError(f"{name} is new: write it")


@pytest.mark.parametrize("golden", of("node"))
def test_what_a_host_reads(golden: dict[str, Any]) -> None:
    ((kind, reader),) = Splitter().frames(bytes.fromhex(golden["hex"]))
    assert kind == golden["type"]
    body = golden["body"]
    match golden["frame"]:
        case "Welcome":
            assert reader.bytes(8) == b"GRHP\1\0\1\0"
            found = msgspec.msgpack.decode(reader.rest(), type=Welcome)
            # Said only where it is so.
            expected = {"rerun": False} | body["map"]
            assert msgspec.structs.asdict(found) | {"secret": found.secret.hex()} == expected
        case "Offered":
            assert (reader.varint(), reader.text(), reader.u8(), reader.text()) == tuple(
                body[name] for name in ("offer", "kind", "status", "reason")
            )
        case "Goodbye":
            assert (reader.u8(), reader.text()) == (body["code"], body["reason"])
        case "Activate":
            read_activate(reader, body)
        case "Deactivate":
            assert (reader.varint(), reader.u8()) == (body["seat"], body["why"])
            assert reader.u8() == body["carry"] + 2 * body["abandon"]
        case "Turn":
            assert [reader.varint() for _ in range(3)] == [body["turn"], body["seat"], body["method"]]
            assert reader.u8() == body["awaited"] + 2 * body["read"] + 4 * body["tick"]
            assert (reader.varint(), reader.block().hex()) == (body["left_us"], body["extension"])
            assert reader.rest().hex() == body["payload"]
        case "Reply":
            assert (reader.varint(), reader.u8(), reader.rest().hex()) == (body["request"], body["status"], body["payload"])
        case "OperationRefused":
            assert reader.varint() == body["turn"]
            assert [reader.text() for _ in range(3)] == [body["actor"], body["operation"], body["reason"]]
        case "StreamItem":
            assert (reader.varint(), reader.varint(), reader.rest().hex()) == (body["stream"], body["number"], body["payload"])
        case "StreamEnd":
            assert (reader.varint(), reader.varint(), reader.u8()) == (body["stream"], body["number"], body["status"])
            assert reader.rest().hex() == body["payload"]
        case _:
            for name in NUMBERS.get(golden["frame"], ()):
                assert reader.varint() == body[name]


def read_activate(reader: Reader, body: dict[str, Any]) -> None:
    assert [reader.varint() for _ in range(3)] == [body["seat"], body["offer"], body["epoch"]]
    flags = reader.u8()
    assert flags == (body["state"] is not None) + 2 * (body["carried"] is not None)
    assert reader.text() == body["key"]
    if flags:
        assert (reader.text(), reader.block().hex()) == (body["state"], body["carried"])
        with pytest.raises(FrameError, match="entries"):
            reader.fields()
    else:
        assert reader.fields() == {}


@pytest.mark.parametrize("golden", of("node"))
def test_a_frame_that_is_cut_short_is_an_error_or_not_whole(golden: dict[str, Any]) -> None:
    whole = bytes.fromhex(golden["hex"])
    for end in range(len(whole)):
        assert Splitter().frames(whole[:end]) == []
    reader = Reader(whole[5:-1])
    with pytest.raises(FrameError):
        while True:
            reader.varint()


def test_numbers_have_one_form() -> None:
    for value in (0, 127, 128, 16_383, 16_384, 2**32, 2**64 - 1):
        assert Reader(varint(value)).varint() == value
    for bad in (b"\x80\x00", b"\xff" * 10, b"\xff" * 9 + b"\x02", b"\x80"):
        with pytest.raises(FrameError):
            Reader(bad).varint()
    assert Reader(block(b"ab")).block() == b"ab"


HELLO = ("name", "sdk", "token", "ended", "lanes", "codecs", "seats_max", "turns_max", "bytes_max", "weight", "spread", "offers")
OFFER = ("kind", "version", "compatible", "digest")
NUMBERS = {
    "Lease": ("number", "ms"), "LaneLost": ("shard",), "CancelTurn": ("turn",), "Credit": ("granted",),
    "StreamCredit": ("stream", "window", "consumed"),
}  # fmt: skip
