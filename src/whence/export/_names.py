"""How functions are called in the files of other tools."""

from __future__ import annotations

from typing import NamedTuple

from whence._text import printable
from whence.export import _paths

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    return [label_of(f.name, f.filename, f.line) for f in tree.functions]


def labels_of_paths(tree: CallTree) -> list[Label]:
    """Name the functions of a tree, and what stands in ``paths()`` for some of them."""
    return [*labels(tree), LEFT_OUT] if _paths.is_deep(tree) else labels(tree)


def label_of(name: str | None, filename: str | None, line: int | None) -> Label:
    """Name a function, or a line in it."""
    if filename is None and line is None:
        return Label(_known(name), None, 0)
    return Label(_known(name), _known(filename), max(line or 0, 0))


def _known(text: str | None) -> str:
    return printable(text) if text is not None and text.strip() else UNKNOWN
