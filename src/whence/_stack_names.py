"""The stacks of a recording, as frames with names."""

from __future__ import annotations

from whence._frame import Frame
from whence._native_names import NativeNames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from whence import _core

    Own = tuple[Frame, ...]

_UNKNOWN = "<unknown>"


class StackNames:
    """Names stacks by their numbers. Each frame is made once."""

    __slots__ = ("_native", "_nodes", "_reader")

    def __init__(self, reader: _core.Reader) -> None:
        self._reader = reader
        self._native = NativeNames(reader)
        self._nodes: dict[int, tuple[int, int | None, Own] | None] = {}

    def frames(self, stack: int) -> tuple[Frame, ...]:
        """Return the frames of a stack, innermost first."""
        nodes = list(self._nodes_from(stack))
        runs = [python for python, _ in nodes if python is not None]
        runs.append(0)  # outside of all
        frames: list[Frame] = []
        passed = 0
        for python, here in nodes:
            if python is None:
                frames += here
            else:
                passed += 1
                for _, own in self._nodes_from(python, runs[passed]):
                    frames += own
        return tuple(frames)

    def _nodes_from(self, stack: int, end: int = 0) -> Iterator[tuple[int | None, Own]]:
        met = set()  # a file that lies may lead in a circle
        while stack != end and stack not in met and (node := self._node(stack)):
            met.add(stack)
            stack, python, here = node
            yield python, here

    def _node(self, stack: int) -> tuple[int, int | None, Own] | None:
        """Return the parent of a stack and what it adds: Python's stack, or frames."""
        if stack not in self._nodes:
            entry = self._reader.stack(stack)
            if entry is None:
                self._nodes[stack] = None
            elif entry[1] is None:
                self._nodes[stack] = entry[0], entry[2], ()
            else:
                self._nodes[stack] = entry[0], None, self._name(entry[1], entry[2])
        return self._nodes[stack]

    def _name(self, code: int, offset: int) -> tuple[Frame, ...]:
        """Return a frame and, if its code was generated, what that came from."""
        if code < 0:
            return self._native.frames(code, offset)
        known = self._reader.code(code)
        if known is None:
            return (Frame(_UNKNOWN, _UNKNOWN, None),)
        name, qualname, filename, _ = known
        name = qualname or name or _UNKNOWN
        place = self._reader.place(code, offset)
        frame = Frame(name, filename or _UNKNOWN, *place)
        if place[0] is None:
            return (frame,)
        return (frame, *sources_of(self._reader, code, place[0]))


def sources_of(reader: _core.Reader, code: int, line: int) -> list[Frame]:
    """Return what a line of generated code came from, innermost first."""
    frames = []
    for source in reader.sources(code, line):
        name, filename, first, column, end_line, end_column = source
        place = first, column, end_line, end_column
        names = name or _UNKNOWN, filename or _UNKNOWN
        frames.append(Frame(*names, *place, kind="generated"))
    return frames
