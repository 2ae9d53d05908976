"""Blocks of memory, added up by the stack that asked for them."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from whence._frame import Frame
    from whence._memory_names import MemoryNames

    Row = tuple[int, int, int, int, int, int]  # and last, bytes and count

STACK, DOMAIN, THREAD, TAGS, BYTES, COUNT = range(6)  # what is where in a row


class Level(NamedTuple):
    """Bytes, and the blocks that they are in."""

    bytes: int
    count: int  # type: ignore[assignment]  # hides tuple.count


class LineOfMemory(NamedTuple):
    """Blocks that one line of the program asked for."""

    filename: str | None
    line: int | None
    function: str | None
    bytes: int
    count: int  # type: ignore[assignment]  # hides tuple.count


class MemoryGroup:
    """Blocks that were asked for by one stack: how many, and their bytes together."""

    __slots__ = ("_names", "_stack", "bytes", "count")

    def __init__(self, names: MemoryNames, rows: list[Row]) -> None:
        self._names = names
        self._stack = rows[0][STACK]
        self.bytes = sum(row[BYTES] for row in rows)
        self.count = sum(row[COUNT] for row in rows)

    @property
    def stack(self) -> tuple[Frame, ...]:
        """The frames that asked, innermost first; none if no Python code did."""
        return self._names.frames(self._stack)

    def __repr__(self) -> str:
        return f"<{self.count} blocks, {self.bytes} bytes, by {self._where()}>"

    def _where(self) -> str:
        innermost = self.stack[:1]
        return "no Python code" if not innermost else "{0}:{2}".format(*innermost[0])


class MemoryGroups(list[MemoryGroup]):
    """Blocks by the stack that asked for them, the most bytes first."""

    __slots__ = ("_names", "_rows")

    def __init__(self, names: MemoryNames, rows: list[Row]) -> None:
        by_stack: dict[int, list[Row]] = {}
        for row in rows:
            by_stack.setdefault(row[STACK], []).append(row)
        groups = [MemoryGroup(names, part) for part in by_stack.values()]
        super().__init__(_largest_first(groups))
        self._names = names
        self._rows = rows

    @property
    def total(self) -> Level:
        """The bytes of all of them, and how many blocks they are."""
        size = sum(group.bytes for group in self)
        return Level(size, sum(group.count for group in self))

    def by_line(self) -> list[LineOfMemory]:
        """Add up by the line that asked: of the innermost Python frame."""
        sums: dict[tuple[str | None, int | None], list[Any]] = {}
        for group in self:
            frame = next(iter(group.stack), None)
            place = (None, None) if frame is None else (frame.filename, frame.line)
            entry = sums.setdefault(place, [frame and frame.name, 0, 0])
            entry[1] += group.bytes
            entry[2] += group.count
        return _largest_first(
            LineOfMemory(*place, *entry) for place, entry in sums.items()
        )

    def by_domain(self) -> dict[str, Level]:
        """Add up by who handed the blocks out: "raw", "mem", "obj", "cuda:0", ..."""
        return self._by(lambda row: self._names.domain(row[DOMAIN]))

    def by_thread(self) -> dict[int, Level]:
        """Add up by the thread that asked, as ``Recording.threads`` numbers them."""
        return self._by(lambda row: row[THREAD])

    def by_tag(self, name: str) -> dict[Any, Level]:
        """Add up by the value of a tag that the thread had set; None: it had not."""
        return self._by(lambda row: self._names.tags(row[TAGS]).get(name))

    def tagged(self, **tags: object) -> MemoryGroups:
        """Return those whose thread had set these tags, perhaps among others."""
        wanted = tags.items()
        has = {
            number: wanted <= self._names.tags(number).items()
            for number in {row[TAGS] for row in self._rows}
        }
        return MemoryGroups(self._names, [row for row in self._rows if has[row[TAGS]]])

    def _by(self, key: Callable[[Row], Any]) -> dict[Any, Level]:
        sums: dict[Any, Level] = {}
        for row in self._rows:
            before = sums.get(key(row), Level(0, 0))
            size, count = before.bytes + row[BYTES], before.count + row[COUNT]
            sums[key(row)] = Level(size, count)
        return dict(sorted(sums.items(), key=lambda item: -item[1].bytes))


def _largest_first(groups: Iterable[Any]) -> list[Any]:
    return sorted(groups, key=lambda group: (-group.bytes, -group.count))
