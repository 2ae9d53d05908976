"""Lines of sources, as far as they are at hand.

What a table from a file calls a source may be any path. So nothing is opened because
such a table names it, unless it is below a folder that the caller has given.
"""

from __future__ import annotations

import linecache
import os
import unicodedata
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whence._core import SourceRange

_LARGEST_SOURCE = 1 << 24
_INDENT = "    "
_TWO_COLUMNS = frozenset("WF")


class Sources:
    """Finds lines, and looks into each file below ``root`` once."""

    def __init__(self, root: str | os.PathLike[str] | None) -> None:
        self._root = None if root is None else _folder(root)
        self._below: dict[str, list[str]] = {}
        self._missing: set[str] = set()  # linecache would search for them each time

    def shown(self, place: SourceRange, *, is_loaded: bool) -> list[str]:
        """Return the line of a place and its carets, none if it is not at hand."""
        line = self._line(place.filename, place.line, is_loaded=is_loaded)
        stripped = line.strip()
        if not stripped.replace("\t", " ").isprintable() or not stripped:
            return []
        carets = _carets(line.rstrip(), place)
        return [_INDENT + stripped, *([_INDENT + carets] if carets else [])]

    def _line(self, filename: str, line: int, *, is_loaded: bool) -> str:
        if self._root is not None:
            if filename not in self._below:
                self._below[filename] = _read_below(self._root, filename)
            lines = self._below[filename]
            if lines:
                return lines[line - 1] if line <= len(lines) else ""
        match linecache.cache.get(filename):
            case (_, _, list(lines), _):
                return lines[line - 1] if line <= len(lines) else ""
        if is_loaded or filename in self._missing:
            return ""
        found = linecache.getline(filename, line)
        if not found and filename not in linecache.cache:
            self._missing.add(filename)
        return found


def _folder(root: str | os.PathLike[str]) -> Path:
    name = root.__fspath__() if isinstance(root, os.PathLike) else root
    if not isinstance(name, str):
        message = f"root must be a str or a path, not {type(name).__name__}"
        raise TypeError(message)
    return Path(name).resolve()


def _read_below(root: Path, filename: str) -> list[str]:
    try:
        path = (root / filename).resolve()
        if path.is_relative_to(root) and path.is_file():
            with path.open("rb") as file:
                data = file.read(_LARGEST_SOURCE)
            return data.decode(errors="replace").splitlines()
    except (OSError, ValueError, RuntimeError):  # no path, or one that leads in circles
        pass
    return []


def _carets(line: str, place: SourceRange) -> str:
    """Return spaces and carets for a line that is shown without its indentation."""
    data = line.encode(errors="surrogatepass")
    if place.column is None or place.end_column is None:
        return ""
    end = place.end_column if place.end_line in (None, place.line) else len(data)
    start = len(data[: place.column].decode(errors="replace"))
    stop = min(len(data[:end].decode(errors="replace")), len(line))
    first = len(line) - len(line.lstrip())
    if not first <= start < stop:
        return ""
    before = "".join(
        "\t" if character == "\t" else " " * _width(character)
        for character in line[first:start]
    )
    return before + "^" * sum(map(_width, line[start:stop]))


def _width(character: str) -> int:
    if character.isascii():
        return 1
    return 2 if unicodedata.east_asian_width(character) in _TWO_COLUMNS else 1
