"""Memory while it is recorded: what is in use, other allocators, tags of threads."""

from __future__ import annotations

import json
import threading

from whence import _core
from whence._core import Domain
from whence._memory_names import DOMAINS
from whence._memory_now import export_history, snapshot, stack_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import ParamSpec, TypeVar

    Value = str | int | float | bool
    P = ParamSpec("P")
    R = TypeVar("R")

__all__ = ["Domain", "domain", "export_history", "snapshot", "stack_of", "tag"]

_LONGEST_TEXT = 256
_LARGEST = 1 << 63
# Of functions that go on after they have returned: generators, coroutines and both.
_GO_ON = 0x20 | 0x80 | 0x200


def domain(name: str) -> Domain:
    """Return the domain with this name, in which an allocator reports what it does.

    What it reports is recorded while memory is, ``record(memory=True)``. The same name
    is the same domain, as long as the process lasts.
    """
    if not isinstance(name, str) or not name:
        message = f"a domain needs a name like 'cuda:0', not {name!r}"
        raise (ValueError if isinstance(name, str) else TypeError)(message)
    if name in DOMAINS:
        message = f"{name!r} is a domain of the process: choose another name"
        raise ValueError(message)
    return Domain(name)


class _Here(threading.local):
    """The tags that are set in this thread, the innermost last."""

    def __init__(self) -> None:
        self.layers: list[Mapping[str, Value]] = []


_here = _Here()


class tag:  # noqa: N801
    """Say something about all that this thread does meanwhile.

    A context manager and a decorator of functions. Tags are texts, of which the first
    256 characters count, integers of up to 64 bits, floats and bools. Further ones add
    to those around them; the same name replaces. They are of the thread: in an event
    loop, other tasks that run before the end have them, too.
    """

    __slots__ = ("_tags",)

    def __init__(self, **tags: Value) -> None:
        self._tags = {name: _checked(name, value) for name, value in tags.items()}

    def __enter__(self) -> None:
        _here.layers.append(self._tags)
        _tell()

    def __exit__(self, *_: object) -> None:
        layers = _here.layers
        for place in reversed(range(len(layers))):
            if layers[place] is self._tags:
                del layers[place]
                _tell()
                return

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return ``function`` with these tags around each call of it."""
        import functools  # noqa: PLC0415

        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & _GO_ON:
            message = (
                "tags are of a thread, and others run before this function is done: "
                f"use tag() in a with statement inside {function!r}"
            )
            raise TypeError(message)

        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return function(*args, **kwargs)

        return wrapper

    def __repr__(self) -> str:
        tags = ", ".join(f"{name}={value!r}" for name, value in self._tags.items())
        return f"whence.memory.tag({tags})"


def _checked(name: str, value: object) -> Value:
    if isinstance(value, str):
        return str(value[:_LONGEST_TEXT])
    if isinstance(value, bool | float):
        return value
    if not isinstance(value, int):
        kind = type(value).__name__
        message = f"a tag is a text, a number or a bool, and {name} is a {kind}"
        raise TypeError(message)
    if not -_LARGEST <= value < _LARGEST:
        message = f"a tag has up to 64 bits, and {name} has more"
        raise ValueError(message)
    return int(value)


def _tell() -> None:
    """Have the core know what is set now, in one form for the same tags."""
    before = _core.set_answering(True)  # what is taken for this is not the program's
    try:
        tags: dict[str, Value] = {}
        for layer in _here.layers:
            tags |= layer
        text = json.dumps(tags, sort_keys=True, separators=(",", ":")) if tags else ""
        _core.set_tags(text)
    finally:
        _core.set_answering(before)
