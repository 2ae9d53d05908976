"""Issuing handles."""

from __future__ import annotations

import os

from whence import _core
from whence.handles._parts import EDGES, UNKNOWN, Part
from whence.handles._table import HandleTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from whence._core import InlinedCall, SourceRange

    Node = TypeVar("Node")


class Recorder(_core.HandleRecorder):
    """Issues handles, and keeps what each stands for.

    Handles count up from 0, and no two of a process are the same, whichever recorder
    and thread they come from. ``top`` is the type of the outermost module, for texts
    that show where in a hierarchy of modules something is.
    """

    __module__ = "whence.handles"
    __slots__ = ("__weakref__", "_namespace", "_process", "_top")

    def __init__(self, *, top: str | None = None) -> None:
        if top is not None and not isinstance(top, str):
            message = f"top must be a str or None, not {type(top).__name__}"
            raise TypeError(message)
        self._top = top
        self._namespace = os.urandom(16).hex()
        self._process = os.getpid()

    def derive(
        self,
        kind: str,
        parents: int | Iterable[int],
        *,
        range: SourceRange | None = None,  # noqa: A002
        op: str | None = None,
        stack: InlinedCall | None = None,
    ) -> int:
        """Return a new handle for what a pass has made from other operations.

        ``kind`` is how: ``"fused"``, ``"split"``, ``"inlined"`` or ``"rewritten"``.
        What it is called, and what source it has of its own, may be given, too.
        Unknown parents, -1, are left out.
        """
        if kind not in EDGES:
            message = f"kind must be one of {', '.join(EDGES)}, not {kind!r}"
            raise ValueError(message)
        given = (parents,) if isinstance(parents, int) else tuple(parents)
        for parent in given:
            if not isinstance(parent, int):
                message = f"parents are handles, ints, not {parent!r}"
                raise TypeError(message)
            if not UNKNOWN <= parent < 2**63 - 1:
                message = f"{parent} is no handle"
                raise ValueError(message)
        known = tuple(int(parent) for parent in given if parent != UNKNOWN)
        edge = (EDGES.index(kind), known)
        return self._derive(edge, range, kind if op is None else op, stack)

    def issue_all(
        self,
        graph: Iterable[Node],
        *,
        children: Callable[[Node], Iterable[Node]],
        describe: Callable[
            [Node],
            tuple[SourceRange | None, str]
            | tuple[SourceRange | None, str, InlinedCall | None],
        ],
    ) -> list[tuple[Node, int]]:
        """Issue a handle for each node of a graph and of the blocks nested in it.

        ``children(node)`` gives the nodes inside one, ``describe(node)`` the arguments
        of ``issue()``. A node that is met again gets no second handle. The result has
        nodes and their handles, a node before those inside it.
        """
        issued: list[tuple[Node, int]] = []  # keeps the nodes, and so their ids
        seen: set[int] = set()
        open_blocks = [iter(graph)]
        while open_blocks:
            for node in open_blocks[-1]:
                if id(node) in seen:
                    continue
                seen.add(id(node))
                issued.append((node, self.issue(*_described(describe(node)))))
                open_blocks.append(iter(children(node)))
                break
            else:
                open_blocks.pop()
        return issued

    def stop(self) -> HandleTable:
        """Return a table of the handles so far. The recorder may be used further."""
        if self._process != os.getpid():  # what a fork has copied goes its own way
            self._process = os.getpid()
            self._namespace = os.urandom(16).hex()
        rows = self._snapshot()
        part = Part(rows, self._namespace, self._top, is_loaded=False)
        return HandleTable._of((part,))  # noqa: SLF001


def _described(arguments: Any) -> Any:
    """Return what ``describe()`` has given, if it can be the arguments of a handle."""
    if not isinstance(arguments, (tuple, list)) or len(arguments) not in (2, 3):
        message = (
            "describe(node) must give (range, op) or (range, op, stack), "
            f"not {arguments!r}"
        )
        raise TypeError(message)
    return arguments
