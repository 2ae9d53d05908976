"""What the lines of a generated file came from."""

from __future__ import annotations

import bisect
from collections.abc import Mapping

from whence._frame import Frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    # A frame, a (filename, line) pair, or a (filename, line, name) triple.
    Origin: TypeAlias = Frame | tuple[str, int] | tuple[str, int, str]
    # What a line came from: one origin, several (innermost first), or nothing.
    Origins: TypeAlias = Origin | Iterable[Origin] | None
    # Exact lines, or (first line, origins) pairs that hold until the next.
    Lines: TypeAlias = Mapping[int, Origins] | Iterable[tuple[int, Origins]]
    Entry: TypeAlias = tuple[int, tuple[Frame, ...]]

_LARGEST_LINE = 2**31 - 1


class LineMap:
    """Lines in their order, each with what holds from there on to the next."""

    __slots__ = ("_frames", "_starts")

    def __init__(self, lines: Lines) -> None:
        if isinstance(lines, Mapping):
            exact = {as_line(line): as_frames(of) for line, of in lines.items()}
            ends = {line + 1: () for line in exact}
            entries: dict[int, tuple[Frame, ...]] = {**ends, **exact}
        else:
            entries = {as_line(line): as_frames(of) for line, of in lines}
        self._starts = sorted(entries)
        self._frames = [entries[line] for line in self._starts]

    def __call__(self, line: int) -> tuple[Frame, ...]:
        """Return what a line came from."""
        place = bisect.bisect_right(self._starts, line)
        return self._frames[place - 1] if place else ()

    def entries(self) -> list[Entry]:
        """Return it as recordings keep it."""
        pairs = zip(self._starts, self._frames, strict=True)
        return [(line, of) for line, of in pairs if 0 <= line <= _LARGEST_LINE]


def stretches(
    lines: Iterable[int], ask: Callable[[int], tuple[Frame, ...]]
) -> list[Entry]:
    """Return what recordings keep of lines that are asked for one by one."""
    entries: list[Entry] = []
    for line in sorted(lines):
        frames = ask(line)
        if frames != (entries[-1][1] if entries else ()):
            entries.append((line, frames))
    return [entry for entry in entries if 0 <= entry[0] <= _LARGEST_LINE]


def as_line(line: object) -> int:
    """Return a line of a line map; TypeError for what is none."""
    if not isinstance(line, int):
        message = f"lines of a line map are int, not {type(line).__name__}"
        raise TypeError(message)
    return line


def as_frames(origins: Origins) -> tuple[Frame, ...]:
    """Return the frames that a line came from, innermost first."""
    if origins is None:
        return ()
    if isinstance(origins, tuple) and origins and isinstance(origins[0], str):
        return (_as_frame(origins),)
    return tuple(_as_frame(origin) for origin in origins)


def _as_frame(origin: object) -> Frame:
    match origin:
        case Frame():
            frame = origin
        case (str(filename), int(line)):
            frame = Frame("<generated>", filename, line)
        case (str(filename), int(line), str(name)):
            frame = Frame(name, filename, line)
        case _:
            message = (
                "an origin is a Frame, (filename, line) or (filename, line, name), "
                f"not {origin!r}"
            )
            raise TypeError(message)
    texts, numbers = frame[:2], frame[2:6]
    if not all(isinstance(text, str) for text in texts) or not all(
        number is None or isinstance(number, int) for number in numbers
    ):
        message = (
            f"an origin has names that are str and places that are int: {origin!r}"
        )
        raise TypeError(message)
    if any(number is not None and abs(number) > _LARGEST_LINE for number in numbers):
        message = f"no file has such lines or columns: {origin!r}"
        raise ValueError(message)
    if frame.kind == "truncated":  # a mark: nothing was generated from it
        return frame
    return frame._replace(kind="generated")
