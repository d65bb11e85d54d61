"""What is read from an actor's class: its methods, its state, and its description."""

from __future__ import annotations

import collections.abc as abc
import copy
import hashlib
import inspect
import json
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast, get_args, get_origin, get_type_hints

import msgspec

from . import frames
from .errors import ActorError

HOOKS = frozenset(("activated", "deactivating", "migrate"))
"""Methods that the runtime calls: no caller can."""


class ClassError(TypeError):
    """A class that cannot be an actor; the message says what to change."""


@dataclass(frozen=True)
class Options:
    """What stands behind the class's name: `class Room(gr.Actor, persistent=True)`."""

    kind: str
    persistent: bool = False
    save: str = "explicit"
    reliable: bool = False
    version: int = 1
    compatible: int = 1
    state_version: int = 1
    idle: float | None = None
    migrate: bool = False
    on_error: str = "keep"

    def check(self, cls: str) -> None:
        """Raises `ClassError` for what cannot be."""
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,127}", self.kind):
            raise ClassError(f"{cls}: kind {self.kind!r} is not lower case letters, digits and _")
        if self.reliable:
            raise ClassError(f"{cls}: reliable kinds cannot be hosted in Python yet; use persistent=True, save='turn'")
        if not re.fullmatch(r"explicit|turn|\d+(ms|s)", self.save):
            raise ClassError(f"{cls}: save={self.save!r} is neither 'explicit', 'turn' nor a time as '5s'")
        if self.save != "explicit" and not self.persistent:
            raise ClassError(f"{cls}: save={self.save!r} is for persistent=True")
        if self.on_error not in ("keep", "restart"):
            raise ClassError(f"{cls}: on_error={self.on_error!r} is neither 'keep' nor 'restart'")
        if not 1 <= self.compatible <= self.version < 1 << 16 or not 0 < self.state_version < 256:
            raise ClassError(f"{cls}: versions count from 1, and `compatible` is at most `version`")


class Coder:
    """Writes and reads values of one type, in both codecs; made once."""

    __slots__ = ("from_json", "from_pack", "plain", "type")

    def __init__(self, of: Any) -> None:
        self.type = of
        self.from_pack = msgspec.msgpack.Decoder(of)
        self.from_json: msgspec.json.Decoder[Any] | None = None
        # Times have no extension types on the wire, but MessagePack's own is what an encoder writes.
        self.plain = not _has_times(of)

    def read(self, payload: bytes) -> Any:
        """The value of a payload."""
        codec = payload[0] if len(payload) > 1 else 0
        if codec == frames.MESSAGE_PACK:
            return self.from_pack.decode(memoryview(payload)[2:])
        if codec == frames.JSON:
            self.from_json = self.from_json or msgspec.json.Decoder(self.type)
            return self.from_json.decode(memoryview(payload)[2:])
        raise msgspec.DecodeError("a payload has no codec that is known")

    def write(self, value: Any, codec: int = frames.MESSAGE_PACK, version: int = 1) -> bytes:
        """The payload of a value."""
        if codec == frames.JSON:
            return bytes((codec, version)) + _JSON.encode(value)
        if not self.plain:
            value = msgspec.to_builtins(value, builtin_types=(bytes,))
        return bytes((codec, version)) + _PACK.encode(value)


@dataclass
class Method:
    """A method that callers have."""

    name: str
    index: int
    function: Callable[..., Any]
    read: bool
    stream: bool
    names: tuple[str, ...]
    required: int
    arguments: Coder
    take: Callable[[Any], Any]
    """The arguments of a read struct: nothing, one, or a tuple."""
    reply: Coder
    """Of a stream: its items."""
    errors: list[type[ActorError]] = field(default_factory=list[type[ActorError]])

    def pack(self, args: tuple[Any, ...], named: dict[str, Any]) -> bytes:
        """The payload of a call's arguments, bound as Python binds them."""
        if len(args) > len(self.names):
            raise TypeError(f"{self.name}() takes {len(self.names)} arguments, but {len(args)} were given")
        bound = dict(zip(self.names, args, strict=False))
        if named:
            for name in named:
                if name not in self.names:
                    raise TypeError(f"{self.name}() has no argument {name!r}")
                if name in bound:
                    raise TypeError(f"{self.name}() got {name!r} twice")
            bound |= named
        if len(bound) < self.required:
            missing = [name for name in self.names[: self.required] if name not in bound]
            raise TypeError(f"{self.name}() needs {', '.join(map(repr, missing))}")
        return self.arguments.write(bound)


class Kind:
    """All that the SDK knows of an actor's class."""

    def __init__(self, cls: type[Any], options: Options) -> None:
        options.check(cls.__name__)
        self.cls = cls
        self.options = options
        self.name = options.kind
        self.module = cls.__module__
        try:
            hints = get_type_hints(cls)
        except NameError as error:
            raise ClassError(f"{cls.__name__}: an annotation cannot be read: {error}") from error
        self.state_fields = _state_fields(cls, hints)
        self.methods = _methods(cls)
        self.by_name = {method.name: method for method in self.methods}
        self.state = self._state_coder(hints) if options.persistent or options.migrate else None

    def fresh(self) -> Any:
        """A new instance, with no state."""
        return self.cls()

    def dump(self, instance: Any) -> bytes:
        """The payload of an instance's state."""
        assert self.state is not None
        value = {name: getattr(instance, name) for name in self.state_fields}
        return self.state.write(value, version=self.options.state_version)

    def load(self, instance: Any, payload: bytes) -> None:
        """Gives an instance the state of a payload, whatever version of the class wrote it."""
        assert self.state is not None
        wrote, reads = payload[1], self.options.state_version
        if wrote > reads:
            raise ClassError(f"{self.name}: its state has version {wrote}, this program reads up to {reads}")
        if wrote < reads:
            older = msgspec.msgpack.decode(payload[2:]) if payload[0] == 1 else msgspec.json.decode(payload[2:])
            value = msgspec.convert(self.cls.migrate(wrote, older), self.state.type)
        else:
            value = self.state.read(payload)
        for name in self.state_fields:
            setattr(instance, name, getattr(value, name))

    def _state_coder(self, hints: dict[str, Any]) -> Coder:
        members: list[Any] = []
        for name, default in self.state_fields.items():
            if default is _MISSING:
                raise ClassError(f"{self.cls.__name__}.{name} is a part of its state, and needs a default")
            members.append((name, hints[name], msgspec.field(default_factory=_factory(default))))
        return Coder(msgspec.defstruct(f"{self.cls.__name__}State", members, kw_only=True))

    def describe(self) -> dict[str, Any]:
        """The kind's description."""
        options: dict[str, Any] = {"persistent": self.options.persistent, "migrate": self.options.migrate}
        if self.options.persistent:
            options["save"] = self.options.save
        if self.options.on_error != "keep":
            options["on_error"] = self.options.on_error
        if self.options.idle is not None:
            options["idle_ms"] = round(self.options.idle * 1000)
        types: list[Any] = []
        for method in self.methods:
            types += [method.arguments.type, method.reply.type]
            types += [_error_struct(error) for error in method.errors]
        schemas, defs = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
        found = iter(schemas)
        methods: list[dict[str, Any]] = []
        for method in self.methods:
            arguments, reply = _inlined(next(found), defs), next(found)
            errors: list[Any] = [{"type": "object", "properties": {e.name: next(found)}} for e in method.errors]
            about: dict[str, Any] = {"name": method.name, "read": method.read, "arguments": arguments}
            about |= {"reply": None if method.stream else reply, "stream": reply if method.stream else None}
            about |= {"error": _one_of(errors), "states": None, "doc": inspect.getdoc(method.function) or ""}
            methods.append(about)
        for method in self.methods:
            defs.pop(method.arguments.type.__name__, None)
        states = [{"name": "self", "version": self.options.state_version}] if self.options.persistent else []
        return {
            "greenroom": 1, "kind": self.name, "version": self.options.version,
            "compatible": self.options.compatible, "doc": inspect.cleandoc(self.cls.__dict__.get("__doc__") or ""),
            "options": options, "methods": methods, "states": states, "topics": [], "$defs": defs,
        }  # fmt: skip


def digest(description: dict[str, Any]) -> str:
    """SHA-256, in hexadecimal digits, of a description without its `doc`s, keys sorted, no spaces."""
    bare = json.dumps(_without_docs(description), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(bare.encode()).hexdigest()


def snake(name: str) -> str:
    """`ChatRoom` as `chat_room`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def defaults(cls: type[Any]) -> list[tuple[str, Callable[[], Any]]]:
    """What an instance's annotated attributes begin as, each for itself."""
    found: list[tuple[str, Callable[[], Any]]] = []
    for name in annotated(cls):
        value = inspect.getattr_static(cls, name, _MISSING)
        if value is not _MISSING and not isinstance(value, _PLAIN):
            found.append((name, _factory(value)))
    return found


def annotated(cls: type[Any]) -> list[str]:
    """The names of a class's annotated attributes, those of its bases first."""
    names: dict[str, None] = {}
    for base in reversed(cls.__mro__):
        for name, hint in base.__dict__.get("__annotations__", {}).items():
            if "ClassVar" not in str(hint) and not base.__module__.startswith("greenroom."):
                names[name] = None
    return list(names)


def _methods(cls: type[Any]) -> list[Method]:
    found: dict[str, Callable[..., Any]] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("greenroom.") or base is object:
            continue
        for name, value in base.__dict__.items():
            if not name.startswith("_") and name not in HOOKS and _is_method(value):
                found[name] = value
    return [_method(cls, index, name, found[name]) for index, name in enumerate(sorted(found))]


def _is_method(value: Any) -> bool:
    return inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value)


def _method(cls: type[Any], index: int, name: str, function: Callable[..., Any]) -> Method:
    where = f"{cls.__name__}.{name}"
    try:
        hints = get_type_hints(function)
    except NameError as error:
        raise ClassError(f"{where}: an annotation cannot be read: {error}") from error
    members: list[Any] = []
    names: list[str] = []
    required = 0
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            raise ClassError(f"{where}: argument {parameter.name!r} must be an ordinary one, as arguments have names")
        of = hints.get(parameter.name, Any)
        if parameter.default is parameter.empty:
            members.append((parameter.name, of))
            required += 1
        else:
            members.append((parameter.name, of, msgspec.field(default_factory=_factory(parameter.default))))
        names.append(parameter.name)
    stream = inspect.isasyncgenfunction(function)
    reply = hints.get("return", Any)
    if stream:
        origin = get_origin(reply)
        if origin not in (abc.AsyncIterator, abc.AsyncGenerator, abc.AsyncIterable) and reply is not Any:
            raise ClassError(f"{where} is a stream: it returns AsyncIterator[..], not {reply}")
        reply = (get_args(reply) or (Any,))[0]
    struct = msgspec.defstruct(f"{cls.__name__}_{name}", members, kw_only=True)
    try:
        arguments, replies = Coder(struct), Coder(reply)
    except TypeError as error:
        raise ClassError(f"{where}: a type of it cannot travel: {error}") from error
    take = cast("Callable[[Any], Any]", operator.attrgetter(*names) if names else _nothing)
    read = bool(getattr(function, "__greenroom_read__", False)) or stream
    method = Method(name, index, function, read, stream, tuple(names), required, arguments, take, replies)
    method.errors = _raised(function)
    return method


def _raised(function: Callable[..., Any]) -> list[type[ActorError]]:
    """The errors of its own that a method's code names."""
    code, scope = function.__code__, function.__globals__
    named = [scope.get(name) for name in code.co_names]
    found = [cls for cls in named if isinstance(cls, type) and issubclass(cls, ActorError) and cls is not ActorError]
    return sorted(set(found), key=lambda cls: cls.name)


def _error_struct(error: type[ActorError]) -> Any:
    return msgspec.defstruct(error.__name__, list(error.field_types().items()))


def _one_of(errors: list[Any]) -> Any:
    # A method can raise what others raise in its stead: what is not known is `true`.
    return errors[0] if len(errors) == 1 else {"anyOf": errors} if errors else True


def _inlined(schema: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    """A struct of arguments, in its place."""
    found = dict(defs.get(schema.get("$ref", "").rpartition("/")[2], schema))
    found.pop("title", None)
    return found


def _without_docs(value: Any) -> Any:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {key: _without_docs(inside) for key, inside in members.items() if key != "doc"}
    return [_without_docs(inside) for inside in cast("list[Any]", value)] if isinstance(value, list) else value


def _state_fields(cls: type[Any], hints: dict[str, Any]) -> dict[str, Any]:
    names = [name for name in annotated(cls) if name in hints and not name.startswith("_")]
    return {name: inspect.getattr_static(cls, name, _MISSING) for name in names}


def _factory(default: Any) -> Callable[[], Any]:
    is_atom = isinstance(default, _ATOMS)
    value: Any = default
    if value in ([], {}, set()) and type(value) in (list, dict, set):
        return type(value)
    return (lambda: value) if is_atom else (lambda: copy.deepcopy(value))


def _has_times(of: Any) -> bool:
    try:
        return "date-time" in str(msgspec.json.schema_components([of])) or of is Any
    except TypeError:
        return True


def _nothing(_: Any) -> tuple[()]:
    return ()


_MISSING: Any = object()
_ATOMS = (int, float, str, bytes, bool, type(None), tuple, frozenset)
_PLAIN = (property, staticmethod, classmethod)
_PACK = msgspec.msgpack.Encoder(decimal_format="string", uuid_format="canonical")
_JSON = msgspec.json.Encoder(decimal_format="string", uuid_format="canonical")
