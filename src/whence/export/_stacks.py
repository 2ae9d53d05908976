"""Stacks of a recording as paths of places, outermost first."""

from __future__ import annotations

from array import array
from typing import NamedTuple

from whence._native_names import NativeNames
from whence._stack_names import sources_of
from whence.export._names import LEFT_OUT, Label, label_of
from whence.export._paths import DEEPEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from whence._core import Reader

    Values = tuple[int, ...]
    Entry = tuple[int | None, int]

NOWHERE = Label("<no Python code>", None, 0)
_HALF = DEEPEST // 2


class _Node(NamedTuple):
    parent: int
    place: int
    depth: int
    outer: int  # the node that it begins with, if it is too deep to be listed


class Stacks:
    """Names the stacks of one process. What looks the same gets the same number.

    A stack is a chain of instructions, of which a line may have several; a number, as
    ``number()`` gives it, is a chain of ``places``, lines of functions. ``labels`` and
    ``starts`` have their names, and the lines where those functions begin; both grow as
    stacks are met.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._native = NativeNames(reader)
        self._numbers: dict[int, int] = {0: 0}  # of stacks
        self._runs: dict[int, int] = {}  # the Python stack of the last run in each
        self._nodes = [_Node(0, 0, 0, 0)]
        self._interned: dict[tuple[int, int], int] = {}
        self._places: dict[tuple[Label, int], int] = {}
        self.labels: list[Label] = []
        self.starts: list[int] = []

    def number(self, stack: int) -> int:
        """Return the number of a stack; 0 if it has no frames, or is not known."""
        way: dict[int, Entry] = {}  # a file that lies may lead in a circle
        while stack not in self._numbers and stack not in way:
            entry = self._reader.stack(stack)
            if entry is None:
                self._numbers[stack] = 0
                break
            parent, code, offset = entry
            way[stack] = code, offset
            stack = parent
        found, python = self._numbers.get(stack, 0), self._runs.get(stack, 0)
        for id_, (code, offset) in reversed(way.items()):
            frames = [(code, offset)]
            if code is None:  # Python frames that are not in the run further out
                frames = self._python_frames(offset, python)
                python = offset
            for frame in frames:
                for place in self._name(*frame):
                    found = self._intern(found, place)
            self._numbers[id_] = found
            if python:
                self._runs[id_] = python
        return found

    def _python_frames(self, stack: int, outer: int) -> list[Entry]:
        frames: dict[int, Entry] = {}
        while stack != outer and stack not in frames:
            entry = self._reader.stack(stack)
            if entry is None or entry[1] is None:
                break
            frames[stack] = entry[1:]
            stack = entry[0]
        return list(reversed(frames.values()))

    def path(self, number: int) -> Sequence[int]:
        """Return its places; of one that is too deep, without its middle."""
        node = self._nodes[number]
        if not node.depth:
            return [self._place(NOWHERE, 0)]
        if node.depth <= DEEPEST:
            return self._climb(number, node.depth)
        cut = array("I", [self._place(LEFT_OUT, 0)])
        return self._climb(node.outer, _HALF) + cut + self._climb(number, _HALF)

    def innermost(self, number: int, most: int) -> list[Label]:
        """Return that many frames at most, innermost first."""
        steps = min(self.depth(number), most)
        return [self.labels[place] for place in reversed(self._climb(number, steps))]

    def depth(self, number: int) -> int:
        """Say how many frames it has."""
        return self._nodes[number].depth

    def _climb(self, number: int, steps: int) -> array[int]:
        path = array("I")
        for _ in range(steps):
            node = self._nodes[number]
            path.append(node.place)
            number = node.parent
        path.reverse()
        return path

    def _intern(self, parent: int, place: int) -> int:
        number = self._interned.setdefault((parent, place), len(self._nodes))
        if number == len(self._nodes):
            around = self._nodes[parent]
            depth = around.depth + 1
            outer = number if depth <= _HALF else around.outer
            self._nodes.append(_Node(parent, place, depth, outer))
        return number

    def _name(self, code: int | None, offset: int) -> Iterator[int]:
        """Yield the places of a frame: what it was generated from, then itself.

        Of a native one, what it was inlined into.
        """
        if code is None:
            return
        if code < 0:
            for frame in reversed(self._native.frames(code, offset)):
                label = label_of(frame.name, frame.filename, frame.line)
                yield self._place(label, 0)
            return
        known = self._reader.code(code)
        name, qualname, filename, start = known or (None, None, None, 0)
        line = self._reader.place(code, offset)[0]
        if line is not None:
            for source in reversed(sources_of(self._reader, code, line)):
                yield self._place(
                    label_of(source.name, source.filename, source.line), 0
                )
        label = label_of(qualname or name, filename or "", line)
        yield self._place(label, start or 0)

    def _place(self, label: Label, start: int) -> int:
        place = self._places.setdefault((label, max(start, 0)), len(self.labels))
        if place == len(self.labels):
            self.labels.append(label)
            self.starts.append(max(start, 0))
        return place


def added_up(
    stacks: Stacks, values: Iterable[tuple[int, Values]]
) -> Iterator[tuple[Sequence[int], Values]]:
    """Yield paths with their values; those of stacks that look the same together."""
    sums: dict[int, Values] = {}
    for stack, each in values:
        number = stacks.number(stack)
        before = sums.get(number)
        total = each if before is None else map(sum, zip(before, each, strict=True))
        sums[number] = tuple(total)
    for number, each in sums.items():
        yield stacks.path(number), each
