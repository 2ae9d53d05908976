"""How functions are called in the files of other tools."""

from __future__ import annotations

from typing import NamedTuple

from whence.export import _paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whence._events import Function
    from whence._tree import CallTree

UNKNOWN = "<unknown>"


class Label(NamedTuple):
    """A function by names that no format stumbles over.

    A function written in C has no ``filename``; ``line`` is 0 if it is not known.
    """

    name: str
    filename: str | None
    line: int


LEFT_OUT = Label("<frames left out>", None, 0)


def labels(tree: CallTree) -> list[Label]:
    """Name the functions of a tree."""
    return [_label(function) for function in tree.functions]


def labels_of_paths(tree: CallTree) -> list[Label]:
    """Name the functions of a tree, and what stands in ``paths()`` for some of them."""
    return [*labels(tree), LEFT_OUT] if _paths.is_deep(tree) else labels(tree)


def _label(function: Function) -> Label:
    line = function.line
    if function.filename is None and line is None:
        return Label(_known(function.name), None, 0)
    return Label(_known(function.name), _known(function.filename), max(line or 0, 0))


def _known(text: str | None) -> str:
    return printable(text) if text is not None and text.strip() else UNKNOWN


def printable(text: str) -> str:
    """Write control characters, lone surrogates and the like as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
