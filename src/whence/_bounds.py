"""Which part of a recording is read."""

from whence import _units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any


class Bounds:
    """A stretch of time, and some of the threads; None for all."""

    __slots__ = ("end", "start", "threads")

    def __init__(
        self,
        start: "int | None" = None,
        end: "int | None" = None,
        threads: "tuple[int, ...] | None" = None,
    ) -> None:
        self.start = start
        self.end = end
        self.threads = threads

    def within(
        self,
        start: "int | str | None",
        end: "int | str | None",
        threads: "Iterable[int] | None",
    ) -> "Bounds":
        """Return the part of this part."""
        starts = [t for t in (self.start, _time(start, "start")) if t is not None]
        ends = [t for t in (self.end, _time(end, "end")) if t is not None]
        chosen = self.threads
        if threads is not None:
            chosen = tuple(t for t in threads if chosen is None or t in chosen)
        first, last = max(starts, default=None), min(ends, default=None)
        if first is not None and last is not None:
            last = max(first, last)
        return Bounds(first, last, chosen)

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
        """Give the arguments of the native reader."""
        return iter((self.start, self.end, self.threads))


def _time(time: "int | str | None", name: str) -> "int | None":
    if isinstance(time, str):
        return _units.moment(time, name)
    if time is not None and not isinstance(time, int):
        message = f"{name} takes nanoseconds or a text like '1.5s', not {time!r}"
        raise TypeError(message)
    return time
