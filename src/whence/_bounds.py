"""Which part of a recording is read, and for how long."""

import time
from operator import index

from whence import _units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_LATEST = (1 << 63) - 1  # a time
_IDS = 1 << 32


class Bounds:
    """A stretch of time, and some of the threads; None for all.

    Each reading of it ends after ``timeout`` nanoseconds, if there is one.
    """

    __slots__ = ("end", "start", "threads", "timeout")

    def __init__(
        self,
        start: "int | None" = None,
        end: "int | None" = None,
        threads: "tuple[int, ...] | None" = None,
        timeout: "int | None" = None,
    ) -> None:
        self.start = start
        self.end = end
        self.threads = threads
        self.timeout = timeout

    def within(
        self,
        start: "int | str | None",
        end: "int | str | None",
        threads: "Iterable[int] | None",
        timeout: "float | str | None" = None,
    ) -> "Bounds":
        """Return the part of this part."""
        starts = [t for t in (self.start, moment(start, "start")) if t is not None]
        ends = [t for t in (self.end, moment(end, "end")) if t is not None]
        chosen = self.threads
        if threads is not None:
            wanted = ids(threads, "threads")
            chosen = tuple(t for t in wanted if chosen is None or t in chosen)
        first, last = max(starts, default=None), min(ends, default=None)
        if first is not None and last is not None:
            last = max(first, last)
        limits = [self.timeout, None if timeout is None else seconds(timeout)]
        limit = min((each for each in limits if each is not None), default=None)
        return Bounds(first, last, chosen, limit)

    def stretch(self, duration: int) -> "tuple[int, int]":
        """Return where it begins and ends in a recording of that length."""
        start = min(max(self.start or 0, 0), duration)
        end = duration if self.end is None else min(self.end, duration)
        return start, max(start, end)

    def has(self, event: "Any") -> bool:
        """Say whether an event lies in it, if only in part."""
        if self.threads is not None and event.thread not in self.threads:
            return False
        begin = event.time if hasattr(event, "time") else event.start
        lasted = getattr(event, "duration", 0)  # None: it never ended
        if self.end is not None and begin >= self.end:
            return False
        if self.start is None or lasted is None:
            return True
        return bool(begin + lasted >= self.start)

    def __iter__(self) -> "Iterator[Any]":
        """Give the arguments of the native reader, which is to begin now."""
        deadline = None
        if self.timeout is not None:
            deadline = time.monotonic_ns() + self.timeout
        return iter((self.start, self.end, self.threads, deadline))


def seconds(timeout: "float | str") -> int:
    """Return a time limit in nanoseconds."""
    return _units.nanoseconds(timeout, "timeout")


def partly(until: int) -> str:
    """Say that the time limit has ended a reading."""
    return f"only a part of the recording was read, up to {until / 1e9:.3f} s"


def moment(time: "int | str | None", name: str) -> "int | None":
    """Return a time in nanoseconds, from those or from a text."""
    if isinstance(time, str):
        return _units.moment(time, name)
    if time is not None and not isinstance(time, int):
        message = f"{name} takes nanoseconds or a text like '1.5s', not {time!r}"
        raise TypeError(message)
    return None if time is None else max(-_LATEST, min(time, _LATEST))


def ids(numbers: "Iterable[int]", name: str) -> "tuple[int, ...]":
    """Return ids as a recording has them; nothing need have these."""
    # A text is iterable, too, and so is what has the id.
    plain = not isinstance(numbers, (str, bytes)) and hasattr(numbers, "__iter__")
    given: tuple[Any, ...] = tuple(numbers) if plain else (numbers,)
    for id_ in given:
        if not plain or isinstance(id_, bool) or not hasattr(id_, "__index__"):
            message = f"{name} takes ids, as Recording.{name} has them, not {id_!r}"
            raise TypeError(message)
        if not 0 <= index(id_) < _IDS:
            message = f"{name} takes ids, as Recording.{name} has them: {id_!r} is none"
            raise ValueError(message)
    return tuple(map(index, given))
