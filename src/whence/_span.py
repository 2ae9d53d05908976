"""Something around every call of a function, such as a span."""

import functools
import inspect
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any

    from whence._core import span as Span  # noqa: N812


def decorate(span: "Span", function: "Callable[..., Any]") -> "Callable[..., Any]":
    """Return ``function`` with a span around what it does, not just around its call.

    A generator's span lasts from its first item to its end, a coroutine's from its
    start to its result.
    """
    return put_around(span._again, function)  # noqa: SLF001


def put_around(
    enter: "Callable[[], AbstractContextManager[Any]]",
    function: "Callable[..., Any]",
) -> "Callable[..., Any]":
    """Return ``function`` with what ``enter()`` gives around what it does."""
    if inspect.isasyncgenfunction(function):
        return _around_async_generator(enter, function)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wrapper(*args: "Any", **kwargs: "Any") -> "Any":
            with enter():
                return await function(*args, **kwargs)

    elif inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def wrapper(*args: "Any", **kwargs: "Any") -> "Any":
            with enter():
                return (yield from function(*args, **kwargs))

        code = getattr(inspect.unwrap(function), "__code__", None)
        if code is not None and code.co_flags & inspect.CO_ITERABLE_COROUTINE:
            wrapper = types.coroutine(wrapper)

    else:

        @functools.wraps(function)
        def wrapper(*args: "Any", **kwargs: "Any") -> "Any":
            with enter():
                return function(*args, **kwargs)

    return wrapper


def _around_async_generator(
    enter: "Callable[[], AbstractContextManager[Any]]",
    function: "Callable[..., Any]",
) -> "Callable[..., Any]":
    @functools.wraps(function)
    async def wrapper(*args: "Any", **kwargs: "Any") -> "Any":
        with enter():
            inner = function(*args, **kwargs)
            go_on, given = inner.asend, None
            while True:
                try:
                    item = await go_on(given)
                except StopAsyncIteration:
                    return
                try:
                    go_on, given = inner.asend, (yield item)
                except GeneratorExit:
                    await inner.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001
                    go_on, given = inner.athrow, error

    return wrapper
