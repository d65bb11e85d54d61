"""Classes: what is read from them, and what they say of themselves."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

import greenroom as gr
from greenroom.actor import kind_of
from greenroom.description import canonical, describe, digest


class NotMember(gr.ActorError):
    user: str
    since: int = 0


class Post(msgspec.Struct):
    text: str
    at: datetime.datetime
    price: decimal.Decimal = decimal.Decimal("1.50")
    id: uuid.UUID | None = None
    raw: bytes = b""


class ChatRoom(gr.Actor, idle=60, version=2):
    """A room."""

    messages: list[str] = []

    async def post(self, user: str, text: str = "hi") -> bool:
        """Posts."""
        if not user:
            raise NotMember(user=user)
        self.messages.append(f"{user}: {text}")
        return True

    @gr.read
    async def history(self, start: int = 0) -> AsyncIterator[str]:
        for message in self.messages[start:]:
            yield message

    async def keep(self, post: Post) -> Post:
        return post

    def helper(self) -> None: ...

    async def _private(self) -> None: ...


def test_a_kind_is_its_class_in_snake_case_with_its_public_coroutines() -> None:
    kind = kind_of(ChatRoom)
    assert kind.name == "chat_room"
    assert [(m.name, m.read, m.stream) for m in kind.methods] == [
        ("history", True, True), ("keep", False, False), ("post", False, False),
    ]  # fmt: skip


def test_a_description_has_types_by_json_schema_and_the_class_needs_no_more_than_annotations() -> None:
    said = describe(kind_of(ChatRoom))
    history, keep, post = said["methods"]
    assert post["arguments"] == {
        "type": "object",
        "properties": {"user": {"type": "string"}, "text": {"type": "string", "default": "hi"}},
        "required": ["user"],
        "x-order": ["user", "text"],
    }
    assert (post["reply"], post["doc"], history["stream"]) == ({"type": "boolean"}, "Posts.", {"type": "string"})
    assert post["error"]["properties"] == {"NotMember": {"$ref": "#/$defs/NotMember"}}
    assert keep["reply"] == {"$ref": "#/$defs/Post"}
    assert set(said["$defs"]) == {"Post", "NotMember"}
    assert said["options"] == {"idle_ms": 60_000}


def test_a_digest_passes_over_docs_and_annotations_alone() -> None:
    said = describe(kind_of(ChatRoom))
    before = digest(said)
    said["doc"] = said["methods"][0]["doc"] = "otherwise"
    said["$defs"]["Post"]["title"] = "P"
    assert digest(said) == before
    said["methods"][0]["arguments"]["properties"]["doc"] = {}
    assert digest(said) != before
    assert canonical({"methods": [{"reply": {"title": "x"}, "b": 1.0, "a": [0.1, "ä\x01\"", 2**60]}], "doc": 1, "z": None}) == (
        '{"methods":[{"a":["f32:3dcccccd","ä\\u0001\\"","f32:5d800000"],"b":1,"reply":true}]}'
    )


def test_times_uuids_and_decimals_travel_as_text_in_both_codecs() -> None:
    coder = kind_of(ChatRoom).by_name["keep"].reply
    post = Post("t", datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC), id=uuid.UUID(int=7), raw=b"\0\xff")
    assert msgspec.msgpack.decode(coder.write(post)[2:]) == {
        "text": "t", "at": "2026-01-02T00:00:00Z", "price": "1.50", "id": str(uuid.UUID(int=7)), "raw": b"\0\xff",
    }  # fmt: skip
    assert coder.read(coder.write(post)) == post
    assert coder.read(coder.write(post, codec=2)) == post
    assert b'"raw":"AP8="' in coder.write(post, codec=2)


def test_a_plain_instance_is_an_object_as_any() -> None:
    one, other = ChatRoom(), ChatRoom()
    assert asyncio.run(one.post("ada")) is True
    assert (one.messages, other.messages, ChatRoom.messages) == (["ada: hi"], [], [])
    with pytest.raises(gr.ActorError) as raised:
        asyncio.run(one.post(""))
    assert raised.value.value == {"NotMember": {"user": "", "since": 0}}
    with pytest.raises(RuntimeError, match="no activation"):
        _ = one.cx


def test_an_error_without_fields_is_its_name() -> None:
    class Full(gr.ActorError):
        pass

    assert Full().value == "Full"
    assert isinstance(gr.ActorError.of("Full"), Full)
    found = gr.ActorError.of({"wanted": 7})
    assert (type(found) is not Full, found.value) == (True, {"wanted": 7})
    with pytest.raises(TypeError, match="needs its field 'user'"):
        NotMember()  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "no spaces"}, "letters, digits"),
        ({"reliable": True, "persistent": True}, "leave the other options out"),
        ({"start": "Init"}, "write reliable=True too"),
        ({"save": "turn"}, "persistent=True"),
        ({"persistent": True, "save": "sometimes"}, "'explicit', 'turn' nor a time"),
        ({"compatible": 2}, "at most `version`"),
        ({"on_error": "x"}, "neither"),
    ],
)
def test_options_that_cannot_be_are_refused_by_name(options: dict[str, Any], words: str) -> None:
    cls = type("Bad", (gr.Actor,), {"run": ChatRoom.post}, **options)
    with pytest.raises(gr.ClassError, match=words):
        kind_of(cls)


def test_classes_that_cannot_be_are_refused_with_the_remedy() -> None:
    class Empty(gr.Actor):
        pass

    class Variable(gr.Actor):
        async def run(self, *names: str) -> None: ...

    class NoDefault(gr.Actor, persistent=True):
        balance: int

        async def run(self) -> None: ...

    class NoStream(gr.Actor):
        async def run(self) -> int:  # pyright: ignore
            yield 1  # pyright: ignore

    class Stateless(gr.Actor, reliable=True):
        @gr.on("Open")
        async def run(self) -> None: ...

    with pytest.raises(gr.ClassError, match="'Open' twice"):
        gr.on("Open", ignore="Open")
    for cls, words in [(Stateless, "say the first one"), (Empty, "at least one"), (Variable, "ordinary"), (NoDefault, "needs a default"), (NoStream, "AsyncIterator")]:
        with pytest.raises(gr.ClassError, match=words):
            kind_of(cls)
    with pytest.raises(gr.ClassError, match="two classes are of kind chat_room"):
        gr.Host([ChatRoom, ChatRoom], "unix:/x")


class Plain:
    """Nothing that travels."""


def test_classes_that_cannot_be_described_are_refused_before_a_node_is_dialled() -> None:
    class Reply(gr.Actor):
        async def run(self) -> Plain: ...  # pyright: ignore

    class Argument(gr.Actor):
        async def run(self, plain: Plain) -> None: ...

    class Kept(gr.Actor, persistent=True):
        plain: Plain = Plain()

        async def run(self) -> None: ...

    class Journaled(gr.Actor, reliable=True):
        plain: Plain = Plain()

        async def run(self) -> None: ...

    large: Any = Literal[tuple(f"{number:0100}" for number in range(3000))]

    class Large(gr.Actor):
        async def run(self) -> None: ...

    Large.run.__annotations__["return"] = large
    for cls, words in [
        (Reply, "Reply.run: its reply cannot be described"),
        (Argument, "Argument.run: its arguments cannot be described"),
        (Kept, "Kept: its state cannot be described"),
        (Journaled, "Journaled: plain cannot be described"),
        (Large, "262144 are the most"),
    ]:
        with pytest.raises(gr.ClassError, match=words):
            gr.Host([cls], "unix:/x")


def test_arguments_are_bound_as_python_binds_them() -> None:
    post = kind_of(ChatRoom).by_name["post"]
    assert msgspec.msgpack.decode(post.pack(("ada",), {"text": "x"})[2:]) == {"user": "ada", "text": "x"}
    for args, named in [((), {}), (("a", "b", "c"), {}), (("a",), {"user": "b"}), (("a",), {"other": 1})]:
        with pytest.raises(TypeError):
            post.pack(args, named)


DESCRIPTIONS = Path(__file__).parents[3] / "crates/greenroom-describe/golden/descriptions.json"


@pytest.mark.parametrize("golden", [pytest.param(one, id=one["name"]) for one in json.loads(DESCRIPTIONS.read_text())])
def test_digests_are_those_of_all_languages(golden: dict[str, Any]) -> None:
    assert canonical(golden["document"]) == golden["canonical"]
    assert digest(golden["document"]) == golden["digest"]
