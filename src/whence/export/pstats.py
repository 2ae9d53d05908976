"""The file that the standard library's profilers write, and ``pstats`` loads.

It is a dictionary, marshalled: (file, line, name) of a function leads to primitive
calls, calls, own and total seconds and, by caller, calls, primitive calls, own and
total seconds: in that order, which is not the same.
"""

from __future__ import annotations

import marshal

from whence.export._metrics import tree_for
from whence.export._names import labels
from whence.export._paths import edges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from whence._recording import Recording
    from whence._tree import CallTree
    from whence.export._names import Label

    Key = tuple[str, int, str]
    Numbers = tuple[int, int, float, float]

_BILLION = 1_000_000_000
_NOTHING: Key = ("~", 0, "<no calls>")


class _Sum:
    """Calls of a function, or of one function by another, as cProfile counts them."""

    __slots__ = ("calls", "own", "primitive", "total")

    def __init__(self) -> None:
        self.calls = self.primitive = self.own = self.total = 0

    def add(self, calls: int, own: int, total: int, *, primitive: bool) -> None:
        self.calls += calls
        self.own += own
        if primitive:
            self.primitive += calls
            self.total += total

    def seconds(self) -> tuple[float, float]:
        return self.own / _BILLION, self.total / _BILLION


def write(recording: Recording, file: BinaryIO) -> None:
    """Write all functions with their callers."""
    marshal.dump(_stats(tree_for(recording, "pstats")), file)


def _stats(tree: CallTree) -> dict[Key, tuple[int, int, float, float, object]]:
    names = [_key(label) for label in labels(tree)]
    places: dict[Key, int] = {}
    numbers = [places.setdefault(name, len(places)) for name in names]
    functions: dict[int, _Sum] = {}
    callers: dict[int, dict[int, _Sum]] = {}
    for edge in edges(tree, numbers):
        counts = edge.calls, edge.own, edge.total
        function = functions.setdefault(edge.function, _Sum())
        function.add(*counts, primitive=edge.outermost)
        by = callers.setdefault(edge.function, {})
        if edge.caller is not None:
            by.setdefault(edge.caller, _Sum()).add(*counts, primitive=edge.first)
    if not functions:  # pstats refuses to load an empty dictionary
        return {_NOTHING: (0, 0, 0.0, 0.0, {})}
    keys = list(places)
    return {
        keys[number]: (
            *(each.primitive, each.calls, *each.seconds()),
            {
                keys[caller]: (by.calls, by.primitive, *by.seconds())
                for caller, by in callers[number].items()
            },
        )
        for number, each in functions.items()
    }


def _key(label: Label) -> Key:
    if label.filename is None:
        return ("~", 0, label.name)
    return (label.filename, label.line, label.name)
