"""Calls added up by the path of functions that leads to them."""

from __future__ import annotations

from array import array
from itertools import chain

from whence._events import Function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from whence._events import Group

_NONE = 0xFFFFFFFF


class CallTree:
    """The paths of a recording, from ``root`` on; ``functions`` adds up over all paths.

    ``left_out`` counts calls for which there was no room. ``complete`` is False if a
    time limit ended the reading; all that happened before ``until``, in nanoseconds,
    was read then.
    """

    __slots__ = (
        "_calls",
        "_children",
        "_function",
        "_own",
        "_parent",
        "_total",
        "functions",
        "left_out",
        "until",
    )

    @classmethod
    def of_tables(cls, tables: Iterator[tuple[Any, ...]], size: int) -> CallTree:
        """Make one tree of those of several processes in a file of that size."""
        first = next(tables, None)
        second = None if first is None else next(tables, None)
        if first is not None and second is None:
            return cls(first)
        from whence import _tree_sum  # noqa: PLC0415

        some = (table for table in (first, second) if table is not None)
        return cls(_tree_sum.add_up(chain(some, tables), size))

    def __init__(self, table: tuple[Any, ...]) -> None:
        functions, parent, function, calls, total, own, left_out, until = table
        self.functions = [Function(*each) for each in functions]
        self.left_out: int = left_out
        self.until: int | None = until
        self._parent = memoryview(parent).cast("I")
        self._function = memoryview(function).cast("I")
        self._calls = memoryview(calls).cast("Q")
        self._total = memoryview(total).cast("Q")
        self._own = memoryview(own).cast("Q")
        self._children: list[list[int]] | None = None

    @property
    def complete(self) -> bool:
        """Whether all of the recording was read, or of the part that was asked for."""
        return self.until is None

    @property
    def root(self) -> TreeNode:
        """What is around all: it has no function, and no time of its own."""
        return TreeNode(self, 0)

    def __len__(self) -> int:
        return len(self._parent) - 1

    def __iter__(self) -> Iterator[TreeNode]:
        """All nodes but the root; parents come before their children."""
        return (TreeNode(self, number) for number in range(1, len(self) + 1))

    def grouped(self, callers: int = 0) -> list[Group]:
        """Add up by function and, if asked for, the nearest so many callers.

        The groups with most time of their own come first.
        """
        from whence._groups import grouped  # noqa: PLC0415

        return grouped(self, callers)

    def walk(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Go down every path: each node, then those below it as they were first called.

        Yields depth, from 0 for calls that nothing is around; the function's place in
        ``functions``; calls, total and own. Takes any depth.
        """
        parents, functions = self._parent, self._function
        first = array("I", bytes(4 * len(parents)))  # 0: none, which is the root
        following = array("I", first)
        for number in range(len(self), 0, -1):
            following[number] = first[parents[number]]
            first[parents[number]] = number
        at, depth = first[0], 0
        while at:
            values = self._calls[at], self._total[at], self._own[at]
            yield depth, functions[at], *values
            if first[at]:
                at, depth = first[at], depth + 1
                continue
            while at and not following[at]:
                at, depth = parents[at], depth - 1
            at = following[at]

    def __repr__(self) -> str:
        return f"<whence.CallTree of {len(self):,} paths>"

    def _children_of(self, number: int) -> list[int]:
        if self._children is None:
            self._children = [[] for _ in self._parent]
            for child in range(1, len(self._parent)):
                self._children[self._parent[child]].append(child)
            for children in self._children:
                children.sort(key=lambda child: -self._total[child])
        return self._children[number]


class TreeNode:
    """The calls that came by one path. Times are nanoseconds."""

    __slots__ = ("_number", "_tree")

    def __init__(self, tree: CallTree, number: int) -> None:
        self._tree = tree
        self._number = number

    @property
    def function(self) -> Function | None:
        """The function, with its totals over all paths; None for the root."""
        number = self._tree._function[self._number]  # noqa: SLF001
        return None if number == _NONE else self._tree.functions[number]

    @property
    def calls(self) -> int:
        return self._tree._calls[self._number]  # noqa: SLF001

    @property
    def total(self) -> int:
        """How long the calls took; for the root, the calls that nothing is around."""
        if self._number == 0:
            return sum(child.total for child in self.children)
        return self._tree._total[self._number]  # noqa: SLF001

    @property
    def own(self) -> int:
        """How long they took without the calls inside them."""
        return self._tree._own[self._number]  # noqa: SLF001

    @property
    def parent(self) -> TreeNode | None:
        if self._number == 0:
            return None
        return TreeNode(self._tree, self._tree._parent[self._number])  # noqa: SLF001

    @property
    def children(self) -> list[TreeNode]:
        """Those that took longest come first."""
        numbers = self._tree._children_of(self._number)  # noqa: SLF001
        return [TreeNode(self._tree, number) for number in numbers]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeNode):
            return NotImplemented
        return self._tree is other._tree and self._number == other._number

    def __hash__(self) -> int:
        return hash((id(self._tree), self._number))

    def __repr__(self) -> str:
        name = self.function.name if self.function else "root"
        return f"<whence.TreeNode {name}: {self.calls:,} calls, {self.total:,} ns>"
