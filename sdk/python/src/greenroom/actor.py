"""The base of all actors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from .kind import ClassError, Kind, Options, defaults, snake

if TYPE_CHECKING:
    from .context import Cx

F = TypeVar("F", bound=Callable[..., Any])


def read(method: F) -> F:
    """Makes a method a read: reads of one activation interleave, and none is beside an exclusive turn."""
    cast("Any", method).__greenroom_read__ = True
    return method


def on(*states: str, defer: str | tuple[str, ...] = (), ignore: str | tuple[str, ...] = ()) -> Callable[[F], F]:
    """Says in which states of a state machine a method's messages run: `@gr.on("Counting", defer="Init", ignore="Done")`.

    In those of `defer` a message waits until the actor has jumped, in those of `ignore` it is done with and nothing has run, in others
    it is refused; "*" stands for all states that are not named. A method without this runs in all of them.
    """
    said = [("run", states), *((how, (of,) if isinstance(of, str) else of) for how, of in (("defer", defer), ("ignore", ignore)))]
    handling: dict[str, str] = {}
    for how, named in said:
        for state in named:
            if state in handling:
                raise ClassError(f"@gr.on names the state {state!r} twice")
            handling[state] = how

    def mark(method: F) -> F:
        cast("Any", method).__greenroom_states__ = handling
        return method

    return mark


class Actor:
    """A virtual actor: its public `async` methods are what callers have, its annotated attributes what each activation has.

    An instance that the runtime makes has `cx`. A plain one, as tests make it, has none, and is called as any object.
    """

    __kind: ClassVar[Kind | None]
    __options: ClassVar[dict[str, Any]]
    __defaults: ClassVar[list[tuple[str, Callable[[], Any]]]]
    __cx: Any

    def __init_subclass__(
        cls,
        *,
        kind: str | None = None,
        persistent: bool = False,
        save: str = "explicit",
        reliable: bool = False,
        start: str | None = None,
        version: int = 1,
        compatible: int = 1,
        state_version: int = 1,
        idle: float | None = None,
        migrate: bool = False,
        on_error: str = "keep",
        placement: str | None = None,
        store: str | None = None,
        mailbox: int | None = None,
    ) -> None:
        super().__init_subclass__()
        cls.__options = {
            "kind": kind or snake(cls.__name__), "persistent": persistent, "save": save, "reliable": reliable,
            "start": start, "version": version, "compatible": compatible, "state_version": state_version, "idle": idle,
            "migrate": migrate, "on_error": on_error, "placement": placement, "store": store, "mailbox": mailbox,
        }  # fmt: skip
        cls.__kind = None
        cls.__defaults = defaults(cls)

    def __new__(cls, *_: Any, **__: Any) -> Any:
        instance = super().__new__(cls)
        instance.__cx = None
        for name, make in cls.__defaults:
            setattr(instance, name, make())
        return instance

    @property
    def cx(self) -> Cx:
        """What the actor may ask of its node."""
        if self.__cx is None:
            raise RuntimeError(f"this {type(self).__name__} is no activation: it was not made by a host, and has no cx")
        return self.__cx

    def _bind(self, cx: Cx) -> None:
        self.__cx = cx

    async def activated(self) -> None:
        """Called when the activation has its state, before its first turn. Raise to refuse the activation."""

    async def deactivating(self, why: str) -> None:
        """Called before the activation ends, unless its host is lost."""

    @classmethod
    def migrate(cls, version: int, state: dict[str, Any]) -> dict[str, Any]:
        """Makes a state of the class's version from one that an older version wrote."""
        raise ClassError(f"{cls.__name__} has no `migrate`, and its state has version {version}")

    @classmethod
    def _kind(cls) -> Kind:
        """What is read from the class, when it is first needed: annotations may name what comes later in its module."""
        if cls is Actor:
            raise ClassError("Actor itself is no kind: subclass it")
        if cls.__kind is None:
            cls.__kind = Kind(cls, Options(**cls.__options))
        return cls.__kind


def kind_of(cls: type[Actor]) -> Kind:
    """What is read from an actor's class. Raises `ClassError` of what is none."""
    if not (isinstance(cls, type) and issubclass(cls, Actor)):  # pyright: ignore[reportUnnecessaryIsInstance]
        remedy = f"give its class, {type(cls).__name__}" if isinstance(cls, Actor) else "give classes that subclass gr.Actor, as class NAME(gr.Actor)"
        raise ClassError(f"{cls!r} is no actor's class: {remedy}")
    return cls._kind()  # pyright: ignore[reportPrivateUsage]


def bind(instance: Actor, cx: Cx) -> None:
    """Makes an instance an activation."""
    instance._bind(cx)  # pyright: ignore[reportPrivateUsage]
