"""Events of a recording, read each time that somebody iterates over them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Generic, TypeVar

    from whence._bounds import Bounds

    Item = TypeVar("Item")
else:  # a base class that needs no import of typing
    Item = None

    class Generic:
        __slots__ = ()
        __class_getitem__ = classmethod(lambda cls, _: cls)


class Events(Generic[Item]):
    """Events of one kind. Each iteration reads the recording again, chunk by chunk."""

    __slots__ = ("_bounds", "_make", "_path", "_read", "_what")

    def __init__(
        self,
        path: str,
        what: str,
        read: Callable[[], Iterator[Any]],
        make: Any,
        bounds: Bounds | None = None,  # if they are not the reader's to heed
    ) -> None:
        self._path = path
        self._what = what
        self._read = read
        self._make = make
        self._bounds = bounds

    def __iter__(self) -> Iterator[Item]:
        events = map(self._make, self._read())
        return events if self._bounds is None else filter(self._bounds.has, events)

    def __repr__(self) -> str:
        return f"<{self._what} of {self._path}>"
