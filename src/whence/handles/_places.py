"""The places behind handles, and how many of them are shown.

Handles share stacks and parents, so a small file may stand for millions of places.
Whatever lists places takes them from here, where there is an end to it.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import NamedTuple

from whence._frame import Frame
from whence._text import printable
from whence.handles._parts import (
    UNKNOWN,
    Found,
    HandleTableError,
    calls_of,
    find_parent,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TypeVar

    from whence._core import SourceRange
    from whence.handles._parts import Handle, Part

    Item = TypeVar("Item")

NOT_KNOWN = "<unknown>"
MOST_CALLS = 500  # of a stack that is shown: so many from either end
MOST_SHOWN = 100  # handles that others were made from, and that have a place
MOST_MET = 10_000  # handles on the way there
MOST_OF_A_LINE = 100  # frames: a map may have thousands of lines with as many each


class Place(NamedTuple):
    """Where one call is made, or the operation itself, and in which function."""

    name: str
    range: SourceRange | None


def places(found: Found) -> Iterator[Place]:
    """Yield the places on the way to an operation, outermost first."""
    name = found.part.top if found.part.top is not None else "<top>"
    for call in calls_of(found.record.stack):
        yield Place(name, call.range)
        name = call.function
    if found.record.range is not None or found.record.edge is None:
        yield Place(name, found.record.range)


def bounded(found: Found, items: Iterable[Item]) -> Iterator[Item | int]:
    """Yield the first and the last, and in the middle how many others there are."""
    depth = len(found.record.stack) if found.record.stack is not None else 0
    left_out = depth - 2 * MOST_CALLS
    if left_out <= 0:
        yield from items
        return
    rest = iter(items)
    yield from islice(rest, MOST_CALLS)
    yield left_out
    yield from islice(rest, left_out, None)


class Origin(NamedTuple):
    """A handle on the way to where another came from."""

    found: Found
    passes: int  # that have made it, one after the other, alike and with no place
    first: Found  # what the first of them has made
    missing: list[str]  # lines that say which of its parents are not there


def origins(parts: Sequence[Part], found: Sequence[Found]) -> Iterator[Origin | None]:
    """Yield handles and what they were made from, each once, nearest first.

    What passes have made in between has no place of its own and does not count; only
    handles that have one do. None is the last if there are more. Edges may lead in
    circles: nothing stops a file from saying so.
    """
    waiting = deque(found)
    met = {each.key for each in waiting}
    left = sum(map(_has_place, found)) + MOST_SHOWN
    while waiting:
        child = waiting.popleft()
        left -= _has_place(child)
        if left < 0:
            yield None
            return
        passes, first = 1, child
        while (before := _only_parent(parts, first, met)) is not None:
            passes, first = passes + 1, before
        missing = []
        for handle in first.record.parents:
            try:
                parent = find_parent(parts, first, handle)
            except HandleTableError as error:
                missing.append(f"{error}\n")
                continue
            if parent is None:
                missing.append(unknown(handle))
            elif parent.key not in met:
                if len(met) == MOST_MET:
                    yield Origin(child, passes, first, missing)
                    yield None
                    return
                met.add(parent.key)
                waiting.append(parent)
        yield Origin(child, passes, first, missing)


def _has_place(found: Found) -> bool:
    return any(True for _ in places(found))


def _only_parent(
    parts: Sequence[Part], child: Found, met: set[tuple[str, int]]
) -> Found | None:
    """Return what the pass before has made, if that is alike and says nothing more."""
    record = child.record
    if len(record.parents) != 1 or len(met) == MOST_MET:
        return None
    try:
        parent = find_parent(parts, child, record.parents[0])
    except HandleTableError:
        return None
    if (
        parent is None
        or parent.key in met
        or (parent.record.edge, len(parent.record.parents)) != (record.edge, 1)
        or _has_place(parent)
    ):
        return None
    met.add(parent.key)
    return parent


def unknown(handle: Handle) -> str:
    """Return the line that says that a handle is not there."""
    if handle == UNKNOWN:
        return f"Handle {UNKNOWN} stands for what is unknown.\n"
    if isinstance(handle, int):
        return f"Handle {handle} is not in the table.\n"
    return (
        f"Handle {handle[1]} of namespace {printable(handle[0])} is not in the table.\n"
    )


def frames(parts: Sequence[Part], found: Found) -> Iterator[Frame]:
    """Yield the frames of a handle, then those of what it was made from."""
    for origin in origins(parts, [found]):
        if origin is None:
            yield _mark("more handles")
            return
        each = origin.found
        for place in reversed(list(bounded(each, places(each)))):
            yield _mark(f"{place:,} calls") if isinstance(place, int) else _frame(place)


def frames_of_line(parts: Sequence[Part], found: Found) -> list[Frame]:
    """Return the frames of a handle that a line map has: the first of them."""
    first = list(islice(frames(parts, found), MOST_OF_A_LINE + 1))
    if len(first) > MOST_OF_A_LINE:
        first[-1] = _mark("more frames")
    return first


def _frame(place: Place) -> Frame:
    at = place.range
    if at is None:
        return Frame(place.name, NOT_KNOWN, None, kind="handle")
    return Frame(
        *(place.name, at.filename, at.line, at.column),
        *(at.end_line, at.end_column, "handle"),
    )


def _mark(what: str) -> Frame:
    return Frame(f"<{what} not shown>", "", None, kind="truncated")
