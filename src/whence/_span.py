"""A span around every call of a function."""

import functools
import inspect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from whence._core import span as Span  # noqa: N812


def decorate(span: "Span", function: "Callable[..., Any]") -> "Callable[..., Any]":
    """Return ``function`` with a span around what it does, not just around its call.

    A generator's span lasts from its first item to its end, a coroutine's from its
    start to its result.
    """
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wrapper(*args: "Any", **kwargs: "Any") -> "Any":
            with span._again():  # noqa: SLF001
                return await function(*args, **kwargs)

    elif inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def wrapper(*args: "Any", **kwargs: "Any") -> "Any":
            with span._again():  # noqa: SLF001
                async for item in function(*args, **kwargs):
                    yield item

    elif inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def wrapper(*args: "Any", **kwargs: "Any") -> "Any":
            with span._again():  # noqa: SLF001
                return (yield from function(*args, **kwargs))

    else:

        @functools.wraps(function)
        def wrapper(*args: "Any", **kwargs: "Any") -> "Any":
            with span._again():  # noqa: SLF001
                return function(*args, **kwargs)

    return wrapper
