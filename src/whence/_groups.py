"""Calls added up by function and by the callers around it."""

from __future__ import annotations

from whence._events import Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whence._tree import CallTree

MOST_CALLERS = 100  # who wants more of a path has the tree


def grouped(tree: CallTree, callers: int) -> list[Group]:
    """Return the groups of a tree, those with most time of their own first."""
    expect_callers(callers, "callers")
    sums: dict[tuple[int, ...], list[int]] = {}  # calls, total and own
    path: list[int] = []
    keys: list[tuple[int, ...]] = []
    around: dict[tuple[int, ...], int] = {}  # how often a group is on the path
    for depth, place, calls, total, own in tree.walk():
        while len(path) > depth:
            path.pop()
            around[keys.pop()] -= 1
        path.append(place)
        key = tuple(path[: -callers - 2 : -1])
        keys.append(key)
        inside = around.get(key, 0)
        around[key] = inside + 1
        group = sums.setdefault(key, [0, 0, 0])
        group[0] += calls
        group[1] += 0 if inside else total
        group[2] += own
    functions = tree.functions
    order = sorted(sums, key=lambda key: (-sums[key][2], key))
    return [
        Group(functions[key[0]], tuple(functions[n] for n in key[1:]), *sums[key])
        for key in order
    ]


def expect_callers(callers: object, name: str) -> None:
    """Raise ``ValueError`` for what is no number of callers."""
    number = isinstance(callers, int) and not isinstance(callers, bool)
    if not number or not 0 <= callers <= MOST_CALLERS:  # type: ignore[operator]
        message = f"{name} must be a number from 0 to {MOST_CALLERS}, not {callers!r}"
        raise ValueError(message)
