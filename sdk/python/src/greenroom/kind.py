"""What is read from an actor's class: its methods and its state."""

from __future__ import annotations

import collections.abc as abc
import copy
import inspect
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast, get_args, get_origin, get_type_hints

import msgspec

from . import errors, frames
from .errors import CYCLIC, ActorError

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
    start: str | None = None
    """The first state of a state machine."""
    version: int = 1
    compatible: int = 1
    state_version: int = 1
    idle: float | None = None
    migrate: bool = False
    on_error: str = "keep"
    placement: str | None = None
    store: str | None = None
    mailbox: int | None = None

    def check(self, cls: str) -> None:
        """Raises `ClassError` for what cannot be."""
        if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", self.kind):
            raise ClassError(f"{cls}: kind {self.kind!r} is not 1 to 64 letters, digits, _, - and .")
        if self.reliable and (self.persistent or self.migrate or self.placement or self.store or self.on_error != "keep"):
            raise ClassError(f"{cls}: reliable=True says already where it is and what is kept; leave the other options out")
        if self.start is not None and not (self.reliable and self.start):
            raise ClassError(f"{cls}: start={self.start!r} makes a state machine, which is reliable: write reliable=True too")
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

    def write(self, value: Any, codec: int = frames.CODEC, version: int = 1) -> bytes:
        """The payload of a value. Raises `ValueError` of one that holds itself."""
        try:
            if codec == frames.JSON:
                return bytes((codec, version)) + _JSON.encode(value)
            if not self.plain:
                value = msgspec.to_builtins(value, builtin_types=(bytes,))
            return (_HEAD if version == 1 else bytes((codec, version))) + _PACK.encode(value)
        except RecursionError:
            raise ValueError(CYCLIC) from None


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
    states: dict[str, str] | None = None
    """What becomes of its messages in the states of a state machine; `None` if it runs in all of them."""
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

    def pack_tick(self, where: str, args: tuple[Any, ...], named: dict[str, Any]) -> bytes:
        """The same of a tick's: those that do not fit are refused where it is set, as nobody hears it from the tick."""
        payload = self.pack(args, named)
        try:
            self.arguments.read(payload)
        except Exception as error:
            raise errors.invalid(error, f"{where}.{self.name}") from error
        return payload


class Kind:
    """All that the SDK knows of an actor's class."""

    def __init__(self, cls: type[Any], options: Options) -> None:
        options.check(cls.__name__)
        self.cls = cls
        self.options = options
        _check_names(cls)
        self.name = options.kind
        self.module = cls.__module__
        try:
            hints = get_type_hints(cls)
        except NameError as error:
            raise ClassError(f"{cls.__name__}: an annotation cannot be read: {error}") from error
        self.state_fields = _state_fields(cls, hints)
        self.methods = _methods(cls)
        if not self.methods:
            raise ClassError(f"{cls.__name__} has no method that callers have: write at least one `async def`")
        machine = next((method.name for method in self.methods if method.states is not None), None)
        if machine is not None and options.start is None:
            raise ClassError(f"{cls.__name__}.{machine} names states: say the first one, class {cls.__name__}(.., start=\"..\")")
        self.by_name = {method.name: method for method in self.methods}
        self.state = self._state_coder(hints) if options.persistent or options.migrate else None
        self.fields = {name: Coder(hints[name]) for name in self._kept()} if options.reliable else {}
        """What is kept of a reliable actor, each by itself."""

    def fresh(self) -> Any:
        """A new instance, with no state."""
        return self.cls()

    def load_fields(self, instance: Any, payloads: dict[str, bytes]) -> None:
        """Gives an instance what a journal has of it. What the class does not know any more stays there."""
        for name, coder in self.fields.items():
            if name in payloads:
                setattr(instance, name, coder.read(payloads[name]))

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

    def _kept(self) -> list[str]:
        for name, default in self.state_fields.items():
            if default is _MISSING:
                raise ClassError(f"{self.cls.__name__}.{name} is a part of its state, and needs a default")
        return list(self.state_fields)

    def _state_coder(self, hints: dict[str, Any]) -> Coder:
        members: list[Any] = [(name, hints[name], _begins_as(self.state_fields[name])) for name in self._kept()]
        return Coder(msgspec.defstruct(f"{self.cls.__name__}State", members, kw_only=True))


def _check_names(cls: type[Any]) -> None:
    """Raises `ClassError` of what stands in the place of what the runtime has."""
    for base in cls.__mro__:
        if base.__module__.startswith("greenroom."):
            continue
        if "cx" in base.__dict__ or "cx" in base.__dict__.get("__annotations__", {}):
            raise ClassError(f"{base.__name__}.cx hides the runtime's own `cx`, by which an actor asks its node: give it another name")
        for name in HOOKS & base.__dict__.keys():
            hook, where = base.__dict__[name], f"{base.__name__}.{name}"
            if name == "migrate":
                if not isinstance(hook, classmethod | staticmethod):
                    raise ClassError(f"{where} makes a state before there is an instance: write @classmethod above it")
            elif not inspect.isfunction(hook):
                raise ClassError(f"{where} is a hook of the runtime's, and no function: write `async def {name}(self, ..)`, or give it another name")
            elif inspect.isasyncgenfunction(hook) or inspect.isgeneratorfunction(hook):
                raise ClassError(f"{where} is a hook, which nobody iterates: take the `yield` out of it")


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
            members.append((parameter.name, of, _begins_as(parameter.default)))
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
    method.states = getattr(function, "__greenroom_states__", None)
    method.errors = _raised(function)
    return method


def _raised(function: Callable[..., Any]) -> list[type[ActorError]]:
    """The errors of its own that a method's code names."""
    code, scope = function.__code__, function.__globals__
    named = [scope.get(name) for name in code.co_names]
    found = [cls for cls in named if isinstance(cls, type) and issubclass(cls, ActorError) and cls is not ActorError]
    return sorted(set(found), key=lambda cls: cls.name)


def _state_fields(cls: type[Any], hints: dict[str, Any]) -> dict[str, Any]:
    names = [name for name in annotated(cls) if name in hints and not name.startswith("_")]
    return {name: inspect.getattr_static(cls, name, _MISSING) for name in names}


def _factory(default: Any) -> Callable[[], Any]:
    if isinstance(default, _ATOMS):
        return lambda: cast("Any", default)
    return lambda: copy.deepcopy(default)


def _begins_as(default: Any) -> Any:
    is_atom = isinstance(default, _ATOMS)
    return cast("Any", default) if is_atom else msgspec.field(default_factory=_factory(default))


def _has_times(of: Any) -> bool:
    try:
        found = repr(msgspec.inspect.type_info(of))
    except (TypeError, RecursionError):
        return True
    return "DateTimeType" in found or "AnyType" in found


def _nothing(_: Any) -> tuple[()]:
    return ()


_MISSING: Any = object()
_ATOMS = (int, float, str, bytes, bool, type(None), tuple, frozenset)
_PLAIN = (property, staticmethod, classmethod)
_HEAD = bytes((frames.MESSAGE_PACK, 1))
_PACK = msgspec.msgpack.Encoder(decimal_format="string", uuid_format="canonical")
_JSON = msgspec.json.Encoder(decimal_format="string", uuid_format="canonical")
