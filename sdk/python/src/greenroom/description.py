"""What a kind says of itself: one JSON document, known by its digest."""

from __future__ import annotations

import hashlib
import inspect
import json
import struct
from collections.abc import Callable, Iterable
from typing import Any, cast

import msgspec

from .errors import ActorError
from .kind import ClassError, Kind, Method, Options


def describe(kind: Kind) -> dict[str, Any]:
    """The description of a kind."""
    types: list[Any] = []
    for method in kind.methods:
        types += [method.arguments.type, method.reply.type, *map(_struct_of, method.errors)]
    schemas, defs = _schemas(kind, types)
    found = iter(schemas)
    methods = [_method(method, found, defs) for method in kind.methods]
    for method in kind.methods:
        defs.pop(method.arguments.type.__name__, None)
    options = kind.options
    return {
        "greenroom": 1, "kind": kind.name, "version": options.version, "compatible": options.compatible,
        "doc": inspect.cleandoc(kind.cls.__dict__.get("__doc__") or ""), "options": _options(options), "methods": methods,
        "states": [{"name": "self", "version": options.state_version}] if options.persistent else [], "topics": [],
        "$defs": defs,
    }  # fmt: skip


def checked(kind: Kind) -> Kind:
    """The kind, if it can be described: raises `ClassError` otherwise."""
    if (size := len(msgspec.json.encode(describe(kind)))) > DESCRIPTION_MAX:
        raise ClassError(
            f"{kind.cls.__name__}: its description has {size} bytes, and {DESCRIPTION_MAX} are the most: let methods take and give smaller types"
        )
    return kind


def _schemas(kind: Kind, types: list[Any]) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    for of, what in ((kind.state.type if kind.state else None, "its state"), *((coder.type, name) for name, coder in kind.fields.items())):
        if of is not None:
            _described(kind.cls.__name__, what, of)
    try:
        return msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    except (TypeError, RecursionError):
        for method in kind.methods:
            for of, what in ((method.arguments.type, "its arguments"), (method.reply.type, "its reply")):
                _described(f"{kind.cls.__name__}.{method.name}", what, of)
        raise


def _described(where: str, what: str, of: Any) -> None:
    try:
        msgspec.json.schema_components([of])
    except (TypeError, RecursionError) as error:
        raise ClassError(f"{where}: {what} cannot be described, so no other language could read it: {error}") from error


DESCRIPTION_MAX = 256 << 10


def digest(description: dict[str, Any]) -> str:
    """SHA-256 of a description's canonical bytes, in hexadecimal digits."""
    return hashlib.sha256(canonical(description).encode()).hexdigest()


def canonical(description: dict[str, Any]) -> str:
    """What a description is known by: without docs and annotations, keys sorted, no spaces; the same in all SDKs."""

    def member(name: str, value: Any) -> str:
        if name == "methods" and isinstance(value, list):
            return _list(cast("list[Any]", value), lambda method: _object(method, of_method, _is_said))
        return _named(value) if name == "$defs" else _plain(value)

    def of_method(name: str, value: Any) -> str:
        return _schema(value) if name in ("arguments", "reply", "error", "stream") else _plain(value)

    return _object(description, member, _is_said)


def _options(options: Options) -> dict[str, Any]:
    """Those that were said."""
    said: dict[str, Any] = {name: True for name in ("persistent", "reliable", "migrate") if getattr(options, name)}
    said |= {name: value for name in ("placement", "store", "mailbox") if (value := getattr(options, name)) is not None}
    if options.start is not None:
        said["start"] = options.start
    if options.idle is not None:
        said["idle_ms"] = round(options.idle * 1000)
    if options.on_error != "keep":
        said["on_error"] = options.on_error
    if options.persistent:
        number = options.save.rstrip("ms")
        after = int(number) * (1 if options.save.endswith("ms") else 1000) if number.isdigit() else None
        said["save"] = options.save if after is None else {"after_ms": after}
    return said


def _method(method: Method, schemas: Iterable[Any], defs: dict[str, Any]) -> dict[str, Any]:
    found = iter(schemas)
    schema, reply = next(found), next(found)
    arguments = dict(defs.get(schema.get("$ref", "").rpartition("/")[2], schema)) | {"x-order": list(method.names)}
    arguments.pop("title", None)
    errors = [
        {"type": "object", "properties": {error.name: next(found)}, "required": [error.name]} for error in method.errors
    ]
    # A method can raise what others raise in its stead, and what is not known is `true`.
    error = errors[0] if len(errors) == 1 else {"anyOf": errors} if errors else True
    about: dict[str, Any] = {"name": method.name, "read": method.read, "arguments": arguments, "error": error}
    about["stream" if method.stream else "reply"] = reply
    if method.states is not None:
        about["states"] = method.states
    return about | {"doc": inspect.getdoc(method.function) or ""}


def _struct_of(error: type[ActorError]) -> Any:
    return msgspec.defstruct(error.__name__, list(error.field_types().items()))


def _is_said(name: str, value: Any) -> bool:
    return name != "doc" and value is not None


def _counts(name: str, _: Any) -> bool:
    return name not in _ANNOTATIONS and not name.startswith("x-")


def _always(_: str, __: Any) -> bool:
    return True


def _schema(schema: Any) -> str:
    if not isinstance(schema, dict):
        return _plain(schema)
    keywords = cast("dict[str, Any]", schema)
    if not any(_counts(name, None) for name in keywords):
        return "true"
    return _object(keywords, _keyword, _counts)


def _keyword(name: str, value: Any) -> str:
    if name in _ONE:
        return _schema(value)
    if name in _SEVERAL and isinstance(value, list):
        return _list(cast("list[Any]", value), _schema)
    return _named(value) if name in _BY_NAME else _plain(value)


def _named(schemas: Any) -> str:
    return _object(cast("dict[str, Any]", schemas), lambda _, schema: _schema(schema), _always)


def _object(members: dict[str, Any], write: Callable[[str, Any], str], counts: Callable[[str, Any], bool]) -> str:
    said = sorted((name.encode(), name) for name, value in members.items() if counts(name, value))
    return "{" + ",".join(f"{_text(name)}:{write(name, members[name])}" for _, name in said) + "}"


def _list(values: list[Any], write: Callable[[Any], str]) -> str:
    return "[" + ",".join(map(write, values)) + "]"


def _plain(value: Any) -> str:
    match value:
        case dict():
            return _object(cast("dict[str, Any]", value), lambda _, inside: _plain(inside), _always)
        case list():
            return _list(cast("list[Any]", value), _plain)
        case str():
            return _text(value)
        case bool() | None:
            return json.dumps(value)
        case _:
            nearest = float(value)
            if nearest.is_integer() and abs(nearest) <= 1 << 48:
                return str(int(nearest))
            return f'"f32:{struct.pack(">f", nearest).hex()}"'


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


_ANNOTATIONS = frozenset(("$comment", "default", "deprecated", "description", "examples", "title"))
_ONE = frozenset(
    ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
    + ("unevaluatedItems", "unevaluatedProperties", "contentSchema")
)
_SEVERAL = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_BY_NAME = frozenset(("properties", "patternProperties", "dependentSchemas"))
