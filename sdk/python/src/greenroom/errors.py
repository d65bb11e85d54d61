"""What a call may end with, other than its reply."""

from __future__ import annotations

import re
from typing import Any, ClassVar, cast, dataclass_transform, get_type_hints

import msgspec

from . import frames


class Failure(Exception):
    """A call's end without the method's own error: `Refused`, `Unknown` or `Cycle`."""

    def __init__(self, reason: str, detail: dict[str, Any] | None = None, message: str | None = None) -> None:
        self.reason = reason
        """The name of the case, as `Overloaded`."""
        self.detail: dict[str, Any] = detail or {}
        """What the node says of it."""
        super().__init__(message or _sentence(reason, self.detail))


class Refused(Failure):
    """Nothing ran: a retry cannot do anything twice."""

    @property
    def retry_after(self) -> float | None:
        """Seconds after which a retry can help; `None` where no retry will."""
        match self.reason:
            case "Overloaded" | "Moved":
                return 0.05
            case "Shed":
                return self.detail.get("retry_after_ms", 1000) / 1000
            case _:
                return None if self.reason in _FINAL else 1.0


class Unknown(Failure):
    """The method may have run, wholly or in part."""


class Fenced(Unknown):
    """Who asks may no longer act: its turn is over, or its host's lease or session. What it does counts no more."""

    told = False
    """Whether the node has said so: of this turn, or of one that it has called."""

    def __init__(self, message: str = "the turn may no longer act: it is over, or its host's session has ended") -> None:
        super().__init__("Fenced", message=message)


class Cycle(Failure):
    """The call would have waited for itself. Nothing ran. `path` names the chain, the first caller first."""

    def __init__(self, path: list[str]) -> None:
        super().__init__("Cycle", message=f"the call chain would deadlock: {' -> '.join(path)}")
        self.path = path


@dataclass_transform(kw_only_default=True)
class ActorError(Exception):
    """A method's own error: subclass it, with annotations as its fields, and raise it with their values by name.

    A caller gets the same class if its program has one of that name, else an `ActorError` with `name` and `value`.
    """

    name: ClassVar[str] = ""
    __types: ClassVar[dict[str, Any] | None] = None
    __classes: ClassVar[dict[str, list[type[ActorError]]]] = {}

    def __init_subclass__(cls) -> None:
        cls.name = cls.__name__
        cls.__types = None
        ActorError.__classes.setdefault(cls.__name__, []).append(cls)

    def __init__(self, *_: Any, **fields: Any) -> None:
        super().__init__()
        types = type(self).field_types()
        if unknown := fields.keys() - types.keys():
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        for name in types:
            if name in fields:
                setattr(self, name, fields[name])
            elif not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} needs its field {name!r}")

    @classmethod
    def field_types(cls) -> dict[str, Any]:
        """Its fields, with their types."""
        if cls.__types is None:
            hints: dict[str, Any] = {}
            for base in reversed(cls.__mro__):
                if issubclass(base, ActorError) and base is not ActorError:
                    hints |= {name: get_type_hints(base)[name] for name in base.__dict__.get("__annotations__", {})}
            cls.__types = hints
        return cls.__types

    @property
    def value(self) -> Any:
        """The error as it travels."""
        fields = {name: getattr(self, name) for name in type(self).field_types()}
        return {self.name: fields} if fields else self.name

    def __str__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self).field_types())
        return f"{type(self).__name__}({fields})" if fields else type(self).__name__

    __repr__ = __str__

    @staticmethod
    def of(value: Any, module: str = "") -> ActorError:
        """The error that travelled as `value`, of the class of that name; one of `module` before others."""
        name, fields = value, {}
        if isinstance(value, dict) and len(cast("dict[Any, Any]", value)) == 1:
            name, fields = next(iter(cast("dict[Any, Any]", value).items()))
        known = ActorError.__classes.get(name, []) if isinstance(name, str) else []
        for cls in sorted(known, key=lambda cls: cls.__module__ != module):
            try:
                types = cls.field_types()
                read = {key: msgspec.convert(fields[key], types[key]) for key in types if key in fields}
                return cls(**read)
            except Exception:
                continue  # Of another form, or its class has its own reason: what travelled is told as it is.
        return _Foreign(value, name if isinstance(name, str) else "")


class _Foreign(ActorError):
    """An error for which this program has no class."""

    def __init__(self, value: Any, name: str) -> None:
        Exception.__init__(self)
        self._value = value
        self.__dict__["name"] = name

    @property
    def value(self) -> Any:
        return self._value

    def __str__(self) -> str:
        return f"{self._value!r}"


def encode(failure: Failure) -> tuple[int, bytes]:
    """A failure as it travels: its status, and its payload."""
    case: Any = failure.reason if not failure.detail else {failure.reason: failure.detail}
    match failure:
        case Refused():
            return frames.REFUSED, frames.packed({"Refused": case})
        case Cycle():
            return frames.CYCLE, frames.packed({"Cycle": failure.path})
        case _:
            panicked = failure.reason == "Panicked"
            return frames.PANICKED if panicked else frames.UNKNOWN, frames.packed({"Unknown": case})


def decode(status: int, payload: bytes, module: str = "") -> Exception:
    """The exception of what is no reply."""
    try:
        value = value_of(payload)
    except Exception as error:
        return unreadable(error)
    if status == frames.ACTOR_ERROR:
        return ActorError.of(value, module)
    family, case = _only(value)
    if family == "Cycle" and isinstance(case, list):
        return Cycle([str(entry) for entry in cast("list[Any]", case)])
    reason, detail = _only(case)
    cls = Refused if family == "Refused" else Unknown
    if not family:
        cls = Refused if status in (frames.REFUSED, frames.INVALID, frames.EXPIRED) else Unknown
        reason = reason or {frames.INVALID: "Invalid", frames.EXPIRED: "Expired"}.get(status, "Unknown")
    if family == "Unknown" and reason == "Fenced":
        fenced = Fenced()
        fenced.told = True
        return fenced
    if not isinstance(detail, dict):
        detail = {} if detail is None else {"what": detail}
    return cls(reason, cast("dict[str, Any]", detail))


def value_of(payload: bytes) -> Any:
    """What a payload holds, without a type."""
    if len(payload) < 2 or payload[0] not in (frames.MESSAGE_PACK, frames.JSON):
        raise frames.FrameError("a payload has no codec that is known")
    module = msgspec.json if payload[0] == frames.JSON else msgspec.msgpack
    return module.decode(payload[2:])


def unreadable(error: Exception) -> Unknown:
    """What came cannot be read. Codecs say so by several types: of nesting, of texts that are not UTF-8, of a user's own types."""
    return Unknown("Unreadable", {"message": _why(error)})


def words_of(error: BaseException) -> str:
    """An exception's type and message, as others are told them: it never raises, and what it gives can be written.

    A message may have what is no UTF-8, as the name of a file, and its `__str__` may raise.
    """
    name = type(error).__name__
    try:
        said = str(error)
    except Exception as why:
        said = f"its __str__ raises {type(why).__name__}; let it return a text"
    words = f"{name}: {said}" if said else name
    if len(words) > WORDS_MAX:
        words = f"{words[:WORDS_MAX]}.. ({len(words)} characters)"
    return words.encode(errors="backslashreplace").decode()


def _why(error: Exception) -> str:
    """Why a value cannot be read."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return str(error) if isinstance(error, msgspec.DecodeError | frames.FrameError) else words_of(error)


def invalid(error: Exception, where: str = "") -> Refused:
    """Arguments that do not fit: which field, and what is wrong with it."""
    message = _why(error)
    at = re.search(r" - at `\$\.?(.*?)`$", message)
    field = at[1] if at else ""
    missing = re.search(r"missing required field `(.*?)`", message)
    if missing:
        field = f"{field}.{missing[1]}" if field else missing[1]
    return Refused("Invalid", {"field": field, "message": f"{where} does not take these arguments: {message}" if where else message})


def _only(value: Any) -> tuple[str, Any]:
    """A variant's name, and what is in it."""
    if isinstance(value, str):
        return value, None
    if isinstance(value, dict) and len(cast("dict[Any, Any]", value)) == 1:
        name, inside = next(iter(cast("dict[Any, Any]", value).items()))
        return str(name), inside
    return "", cast("Any", value)


def _sentence(reason: str, detail: dict[str, Any]) -> str:
    said = detail.get("message")
    if said:
        return f"{reason}: {said}"
    words = ", ".join(f"{name}: {value}" for name, value in detail.items())
    return f"{reason} ({words})" if words else reason


WORDS_MAX = 16 << 10
"""Characters of an exception that others are told; its host's log has all of them."""

CYCLIC = "it holds itself, or is nested too deeply: let it hold a key or an index there"

_FINAL = frozenset(
    ("UnknownKind", "UnknownMethod", "Invalid", "InvalidKey", "DeadLetter", "Unbound", "Denied", "TickOver")
    + ("Leaving", "Unsendable")
)
