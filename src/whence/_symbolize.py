"""Naming the frames of many stacks at once."""

from __future__ import annotations

from whence import _core, generated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from whence._core import Stack
    from whence._frame import Frame


def symbolize(stacks: Iterable[Stack]) -> list[list[Frame]]:
    """Name the frames of each stack, innermost first.

    Each distinct frame is resolved once, whichever stacks it is in. The result has one
    list for each stack, in the order given; the same stack gives the same list object.
    """
    resolved = _core.resolve(_as_list(stacks, "symbolize"))
    expansion = generated.expansion()
    return resolved if expansion is None else expansion.apply(resolved)


def to_json(stacks: Iterable[Stack]) -> str:
    """Write stacks as a JSON array with, for each stack, an array of its frames.

    A frame is an object with ``name``, ``filename``, ``line``, ``column``,
    ``end_line``, ``end_column`` and ``kind``. The text is valid for any name.
    """
    given = _as_list(stacks, "to_json")
    expansion = generated.expansion()
    if expansion is None:
        return _core.to_json(given)
    return _core.frames_to_json(expansion.apply(_core.resolve(given)))


def _as_list(stacks: Iterable[Stack], function: str) -> list[Stack]:
    if isinstance(stacks, _core.Stack):
        message = f"{function}() takes an iterable of stacks: write {function}([stack])"
        raise TypeError(message)
    return list(stacks)
