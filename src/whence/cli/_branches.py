"""The branches of a call tree that are worth a line."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whence._tree import CallTree, TreeNode

_LEAST_SHARE = 0.02  # of all time
_MOST_LINES = 40
_MOST_DEPTH = 24  # as far as it is shown
_LIBRARY = ("/site-packages/", "/dist-packages/", "/lib/python3", "<frozen ")


class Branch(NamedTuple):
    """A node, how far it is indented, and its time without what is shown below it."""

    node: TreeNode
    depth: int
    own: int


def is_library(node: TreeNode) -> bool:
    """Say whether a function is not the program's own, by where its file is."""
    function = node.function
    if function is None or function.filename is None:
        return True
    return is_library_file(function.filename)


def is_library_file(filename: str) -> bool:
    """Say whether a file is not the program's own, by where it is."""
    return any(part in filename for part in _LIBRARY)


def choose(tree: CallTree, *, everything: bool) -> list[Branch]:
    """Return the branches that matter, in the order of the tree.

    What a library calls inside itself is left out; where it calls the program again,
    that is shown below the function through which the library was entered.
    """
    root = tree.root
    least = root.total * _LEAST_SHARE
    shown: list[tuple[TreeNode, int, int]] = []  # and the place of its parent
    # Walked without recursion: trees may be very deep.
    waiting = [(child, -1, 0, False) for child in reversed(root.children)]
    while waiting:
        node, parent, depth, inside = waiting.pop()
        if node.total < least or node.total == 0:
            continue
        library = is_library(node)
        hidden = library and inside and not everything
        if not hidden and depth < _MOST_DEPTH:
            shown.append((node, depth, parent))
            parent, depth = len(shown) - 1, depth + 1
        waiting += [(c, parent, depth, library) for c in reversed(node.children)]
    kept = _keep(shown)
    below = dict.fromkeys(kept, 0)
    for place in kept:
        node, _, parent = shown[place]
        if parent in below:
            below[parent] += node.total
    return [
        Branch(shown[place][0], shown[place][1], shown[place][0].total - below[place])
        for place in kept
    ]


def _keep(shown: list[tuple[TreeNode, int, int]]) -> list[int]:
    """Choose the largest, each with all that is above it."""
    kept: set[int] = set()
    for place in sorted(range(len(shown)), key=lambda p: -shown[p][0].total):
        if len(kept) >= _MOST_LINES:
            break
        above = place
        while above >= 0 and above not in kept:
            kept.add(above)
            above = shown[above][2]
    return sorted(kept)
