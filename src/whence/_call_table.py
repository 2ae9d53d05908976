"""Calls as columns: a stream of batches, and one batch."""

from __future__ import annotations

from array import array
from itertools import chain

from whence import _core
from whence._events import Call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from whence._bounds import Bounds

ENTERED = ("call", "resume", "throw", "open")
LEFT = ("return", "unwind", "yield", "gone", "unstarted", "cut")
# In the order in which the native reader puts them behind one another.
_COLUMNS = (
    *(("start", "q"), ("duration", "q"), ("own", "q"), ("number", "Q")),
    *(("parent", "Q"), ("task", "Q"), ("generator", "Q"), ("count", "Q")),
    *(("depth", "I"), ("function", "I"), ("thread", "I")),
    *(("entered", "B"), ("left", "B")),
)
_UNKNOWN = (None, None, None)
_NO_FUNCTION = 0xFFFFFFFF  # there was no room for it


class CallBatch:
    """Some calls as columns, which are memoryviews; iterating yields ``Call``.

    ``functions[n]`` is the name, file and line of the function with number ``n``. Where
    there is no task, parent or generator, the column has 0. ``entered`` and ``left``
    are numbers: places in ``CallBatch.ENTERED`` and ``CallBatch.LEFT``.
    """

    __slots__ = ("_rows", "functions", *(name for name, _ in _COLUMNS))

    ENTERED = ENTERED
    LEFT = LEFT
    if TYPE_CHECKING:
        start: memoryview[int]
        duration: memoryview[int]
        own: memoryview[int]
        number: memoryview[int]
        parent: memoryview[int]
        task: memoryview[int]
        generator: memoryview[int]
        count: memoryview[int]
        depth: memoryview[int]
        function: memoryview[int]
        thread: memoryview[int]
        entered: memoryview[int]
        left: memoryview[int]

    def __init__(self, rows: int, functions: list[Any], **columns: Any) -> None:
        self._rows = rows
        self.functions = functions
        for name, column in columns.items():
            setattr(self, name, column)

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[Call]:
        return map(self._call, range(self._rows))

    def __getitem__(self, row: int) -> Call:
        return self._call(range(self._rows)[row])

    def __repr__(self) -> str:
        return f"<whence.CallBatch of {self._rows:,} calls>"

    def _call(self, row: int) -> Call:
        number = self.function[row]
        known = self.functions
        name, file, line = known[number] if number < len(known) else _UNKNOWN
        return Call(
            *(name, file, line, self.start[row], self.duration[row], self.own[row]),
            *(self.depth[row], self.thread[row], self.task[row] or None),
            *(ENTERED[self.entered[row]], LEFT[self.left[row]]),
            *(self.generator[row] or None, self.number[row]),
            *(self.parent[row] or None, self.count[row]),
        )


class Calls:
    """The calls of a recording as they ended, chunk by chunk: a stream of batches.

    Each iteration reads the recording again. ``read()`` reads all into one batch.
    Whoever takes Arrow streams takes this without copies.
    """

    __slots__ = ("_bounds", "_path", "_readers")

    def __init__(
        self, path: str, readers: Callable[[], Iterator[_core.Reader]], bounds: Bounds
    ) -> None:
        self._path = path
        self._readers = readers
        self._bounds = bounds

    def __iter__(self) -> Iterator[CallBatch]:
        bounds = tuple(self._bounds)
        batches = (_batches(reader, bounds) for reader in self._readers())
        return chain.from_iterable(batches)

    def read(self) -> CallBatch:
        """Return all calls as one batch."""
        bounds = tuple(self._bounds)
        parts = [list(_batches(reader, bounds)) for reader in self._readers()]
        functions = _number_functions([batches for batches in parts if batches])
        batches = list(chain.from_iterable(parts))
        if len(batches) == 1:
            return batches[0]
        columns = {
            name: memoryview(b"".join(getattr(batch, name) for batch in batches)).cast(
                type_  # type: ignore[call-overload]
            )
            for name, type_ in _COLUMNS
        }
        return CallBatch(sum(map(len, batches)), functions, **columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give a stream to whoever asks; another schema than ours is not made."""
        return _core.arrow_calls(self._readers(), tuple(self._bounds))

    def __repr__(self) -> str:
        return f"<calls of {self._path}>"


def _number_functions(parts: list[list[CallBatch]]) -> list[Any]:
    """Give the functions of several processes the same numbers; return all of them."""
    if len(parts) < 2:  # noqa: PLR2004
        return parts[0][-1].functions if parts else []
    known: dict[Any, int] = {}
    for batches in parts:
        numbers = {_NO_FUNCTION: _NO_FUNCTION}
        for number, function in enumerate(batches[-1].functions):
            numbers[number] = known.setdefault(function, len(known))
        for batch in batches:
            same = array("I", map(numbers.__getitem__, batch.function))
            batch.function = memoryview(same)
    return list(known)


def _batches(reader: _core.Reader, bounds: tuple[Any, ...]) -> Iterator[CallBatch]:
    return map(_batch, reader.batches(*bounds))


def _batch(item: tuple[int, int, bytes, list[Any]]) -> CallBatch:
    rows, room, memory, functions = item
    view = memoryview(memory)
    columns = {}
    at = 0
    for name, type_ in _COLUMNS:
        size = {"q": 8, "Q": 8, "I": 4, "B": 1}[type_]
        columns[name] = view[at : at + rows * size].cast(type_)  # type: ignore[call-overload]
        at += room * size
    return CallBatch(rows, functions, **columns)
