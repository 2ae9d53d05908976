"""Naming the frames of many stacks at once."""

from __future__ import annotations

from whence import _core, generated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from whence._core import Stack
    from whence._frame import Frame


SYMBOLS = ("full", "symbols", "off")


def symbolize(
    stacks: Iterable[Stack], *, symbols: str = "symbols"
) -> list[list[Frame]]:
    """Name the frames of each stack, innermost first.

    Each distinct frame is resolved once, whichever stacks it is in. The result has one
    list for each stack, in the order given; the same stack gives the same list object.

    ``symbols`` says how far to look for what native frames are: ``"symbols"`` in the
    symbol tables of their libraries, ``"full"`` also in their debug information, which
    has files, lines and inlined functions, ``"off"`` nowhere.
    """
    resolved = _core.resolve(_as_list(stacks, "symbolize"), _namer(symbols))
    expansion = generated.expansion()
    return resolved if expansion is None else expansion.apply(resolved)


def to_json(stacks: Iterable[Stack]) -> str:
    """Write stacks as a JSON array with, for each stack, an array of its frames.

    A frame is an object with ``name``, ``filename``, ``line``, ``column``,
    ``end_line``, ``end_column`` and ``kind``. The text is valid for any name.
    """
    given = _as_list(stacks, "to_json")
    expansion = generated.expansion()
    if expansion is None and not _core.native_statistics()["modules"]:
        return _core.to_json(given)
    return _core.frames_to_json(symbolize(given))


def _namer(symbols: str) -> Callable[[str, str, int], list[Frame]] | None:
    """Return what names native frames, imported when there is one."""
    if symbols not in SYMBOLS:
        known = ", ".join(map(repr, SYMBOLS))
        message = f"symbols must be one of {known}, not {symbols!r}"
        raise ValueError(message)
    if symbols == "off" or not _core.native_statistics()["modules"]:
        return None
    from whence import _native  # noqa: PLC0415

    return _native.namer(symbols)


def _as_list(stacks: Iterable[Stack], function: str) -> list[Stack]:
    if isinstance(stacks, _core.Stack):
        message = f"{function}() takes an iterable of stacks: write {function}([stack])"
        raise TypeError(message)
    return list(stacks)
