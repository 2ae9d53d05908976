"""A call tree as paths, and as calls of one function by another."""

from __future__ import annotations

from array import array
from typing import NamedTuple

from whence._bounds import partly
from whence.export._warn import warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whence._recording import Recording
    from whence._tree import CallTree

# Formats that list paths would grow with the square of the depth of a recursion.
DEEPEST = 1_000
_MOST_CUT = 4_096


def tree_of(recording: Recording) -> CallTree:
    """Read the tree; warn of what is not in it."""
    tree = recording.call_tree()
    if tree.until is not None:
        warn(partly(tree.until))
    if tree.left_out:
        warn(
            f"calls left out: {tree.left_out:,}, for lack of room for so many paths; "
            "export a shorter time, or fewer threads"
        )
    return tree


def is_deep(tree: CallTree) -> bool:
    """Say whether some path is too long to be listed."""
    return any(depth >= DEEPEST for depth, *_ in tree.walk())


def paths(tree: CallTree) -> Iterator[tuple[Sequence[int], int, int]]:
    """Yield paths as places of functions, outermost first, their calls and own time.

    A path is valid until the next one is asked for. Of one that is too long, the middle
    is left out: a number after those of all functions stands for it. What has become
    the same by that is put together.
    """
    half = DEEPEST // 2
    path = array("I")
    begin = b""
    cut: dict[tuple[bytes, bytes], tuple[int, int]] = {}
    for depth, function, calls, _, own in tree.walk():
        del path[depth:]
        path.append(function)
        if depth < DEEPEST:
            begin = b""
            yield path, calls, own
            continue
        begin = begin or path[:half].tobytes()
        ends = begin, path[-half:].tobytes()
        calls_before, own_before = cut.get(ends, (0, 0))
        cut[ends] = calls_before + calls, own_before + own
        if len(cut) == _MOST_CUT:
            yield from _put_together(cut, len(tree.functions))
            cut.clear()
    yield from _put_together(cut, len(tree.functions))


def _put_together(
    cut: dict[tuple[bytes, bytes], tuple[int, int]], left_out: int
) -> Iterator[tuple[Sequence[int], int, int]]:
    for (begin, end), (calls, own) in cut.items():
        path = array("I", begin)
        path.append(left_out)
        path.frombytes(end)
        yield path, calls, own


class Edge(NamedTuple):
    """The calls of a function by another along one path.

    ``caller`` is None where nothing is around. ``outermost`` says that the function is
    not further out on the path, ``first`` that no other call of it by this caller is.
    """

    caller: int | None
    function: int
    calls: int
    total: int
    own: int
    outermost: bool
    first: bool


def edges(tree: CallTree, numbers: Sequence[int]) -> Iterator[Edge]:
    """Yield the last step of every path. Functions of the same number are taken as one.

    ``numbers`` has one for each function of the tree.
    """
    path: list[int] = []
    around: dict[int | tuple[int | None, int], int] = {}  # how often on the path
    for depth, place, calls, total, own in tree.walk():
        while len(path) > depth:
            left = path.pop()
            around[left] -= 1
            around[path[-1] if path else None, left] -= 1
        function, caller = numbers[place], path[-1] if path else None
        pair = caller, function
        outermost, first = not around.get(function), not around.get(pair)
        yield Edge(caller, function, calls, total, own, outermost, first)
        around[function] = around.get(function, 0) + 1
        around[pair] = around.get(pair, 0) + 1
        path.append(function)
