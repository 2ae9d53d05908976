"""Files, lines and inlined functions from debug info, by the package ``symbolic``.

What it does by itself and we do not want: it maps files, and SIGBUS ends a program that
looks at a mapping of a file which was cut, so it gets bytes; it aborts the process if a
packed section claims a size that cannot be allocated, so sizes are held against a bound
before; past the last symbol of a file it answers with that one, so what has no file and
no line is left to our own table.
"""

from __future__ import annotations

from whence import _core
from whence._debug_files import identify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whence._debug_files import Found

# Bytes of debug info, unpacked: of one file, and of all whose tables are kept.
MOST_DEBUG_INFO = 2 << 30
_NO_NAMES = ("?", "<unknown>", "<name omitted>")


def missing() -> str | None:
    """Return why there is no package ``symbolic``; None if there is one."""
    try:
        import symbolic.debuginfo  # noqa: F401, PLC0415
    except (ImportError, OSError) as error:
        text = "lines and inlined functions need the package symbolic, "
        text += f"pip install 'whence[symbols]': {error}"
        return " ".join(text.split())
    return None


class LineFiles:
    """The tables of lines of some files. ``problems`` is as in Symbolizer."""

    def __init__(self, problems: dict[str, str]) -> None:
        self._problems = problems
        # In the order of their last use. None for a file that cannot be used.
        self._tables: dict[tuple[int, ...], tuple[Any, int]] = {}

    def locate(
        self, found: Found, addresses: list[int]
    ) -> list[list[tuple[str, str, int]]]:
        """Locate addresses, each in functions from the innermost on: name, file, line.

        What is not known is "" or 0; where there is no debug info there is nothing.
        """
        table = self._table(found)
        if table is None:
            return [[] for _ in addresses]
        base = found.file.load_address
        return [
            self._places(table, found.path, address - base) for address in addresses
        ]

    def _places(
        self, table: Any, path: str, address: int
    ) -> list[tuple[str, str, int]]:
        if address < 0:
            return []
        try:
            locations = table.lookup(address)
        except Exception as error:  # noqa: BLE001 - whatever it makes of damaged files
            self._problems[path] = _one_line(error)
            return []
        if not any(location.full_path for location in locations):
            return []
        return [
            (_name(location.symbol), location.full_path or "", location.line)
            for location in locations
        ]

    def _table(self, found: Found) -> Any:
        if (kept := self._tables.pop(found.identity, None)) is None:
            kept = self._make(found), found.file.debug_size
        table, size = kept
        self._tables[found.identity] = kept
        in_all = sum(size for table, size in self._tables.values() if table is not None)
        for identity, (other, size) in list(self._tables.items())[:-1]:
            if in_all <= MOST_DEBUG_INFO:
                break
            if other is not None:
                del self._tables[identity]
                in_all -= size
        return table

    def _make(self, found: Found) -> Any:
        from symbolic.debuginfo import Archive  # noqa: PLC0415

        path, file, identity = found
        if max(file.debug_size, identity[2]) > MOST_DEBUG_INFO:
            text = f"has more than {MOST_DEBUG_INFO >> 30} GB of debug info"
            self._problems[path] = text
            return None
        try:
            with open(path, "rb") as opened:
                data = opened.read(identity[2] + 1)
            if len(data) != identity[2] or identify(path) != identity:
                self._problems[path] = "was changed while it was read"
                return None
            archive = Archive.from_bytes(data)  # which does not copy them
            return next(archive.iter_objects()).make_symcache()
        except Exception as error:  # noqa: BLE001 - whatever it makes of damaged files
            self._problems[path] = _one_line(error)
            return None


def _name(symbol: str) -> str:
    return "" if symbol in _NO_NAMES else _core.demangle(symbol)


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return f"its debug info cannot be read: {text}"
