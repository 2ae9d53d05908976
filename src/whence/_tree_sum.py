"""The call trees of several processes as one: what came by the same path is one node.

A function is the same if its name, file and line are. Tables are those that the native
reader gives and ``CallTree`` takes.
"""

from __future__ import annotations

from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Table = tuple[Any, ...]

_NONE = 0xFFFFFFFF
_LARGEST = 2**64 - 1
# A file may have thousands of small parts, each of which claims to hold much.
_LEAST_ROOM = 1 << 20
_BYTES_PER_PATH = 12


def add_up(tables: Iterable[Table], size: int) -> Table:
    """Add up the trees of a file of that size, as far as there is room for them."""
    whole = _Sum(max(_LEAST_ROOM, size // _BYTES_PER_PATH))
    for table in tables:
        whole.add(table)
    return whole.table()


class _Sum:
    def __init__(self, room: int) -> None:
        self._room = room  # for nodes
        self._left_out = 0
        self._until: int | None = None  # the earliest
        self._numbers: dict[tuple[Any, ...], int] = {}  # of functions
        self._totals: list[list[int]] = []  # calls, total and own of each
        self._places: dict[int, int] = {}  # of nodes, by their parent and function
        self._parent, self._function = array("I", [0]), array("I", [_NONE])
        self._calls, self._total, self._own = [0], [0], [0]

    def add(self, table: Table) -> None:
        functions, parent, function, *numbers, left_out, until = table
        parents, names = memoryview(parent).cast("I"), memoryview(function).cast("I")
        calls, total, own = (memoryview(column).cast("Q") for column in numbers)
        self._left_out += left_out
        if until is not None:
            self._until = min(until, self._until or until)
        if len(parents) + len(self._parent) > self._room:  # all of it, or nothing
            self._left_out += sum(calls)
            return
        same = [self._add_function(*each) for each in functions]
        nodes = [0]
        for node in range(1, len(parents)):
            place = self._node(nodes[parents[node]], same[names[node]])
            self._calls[place] += calls[node]
            self._total[place] += total[node]
            self._own[place] += own[node]
            nodes.append(place)

    def _add_function(self, *each: Any) -> int:
        number = self._numbers.setdefault(each[:3], len(self._numbers))
        if number == len(self._totals):
            self._totals.append([0, 0, 0])
        totals = self._totals[number]
        for place, value in enumerate(each[3:]):
            totals[place] += value
        return number

    def _node(self, parent: int, function: int) -> int:
        place = self._places.setdefault(parent << 32 | function, len(self._parent))
        if place == len(self._parent):
            self._parent.append(parent)
            self._function.append(function)
            for column in (self._calls, self._total, self._own):
                column.append(0)
        return place

    def table(self) -> Table:
        functions = [
            (*each, *(min(value, _LARGEST) for value in totals))
            for each, totals in zip(self._numbers, self._totals, strict=True)
        ]
        columns = (
            array("Q", [min(value, _LARGEST) for value in column]).tobytes()
            for column in (self._calls, self._total, self._own)
        )
        paths = self._parent.tobytes(), self._function.tobytes()
        return (functions, *paths, *columns, self._left_out, self._until)
