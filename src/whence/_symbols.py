"""Names for addresses in native code.

    Symbolizer.name() -> DebugFiles   which file says it
                      -> ElfFile      the function, from the file's symbol table
                      -> symbolic     files, lines and inlined functions, if asked for

A file of any content gives names, or a placeholder and a reason.
"""

from __future__ import annotations

import os

from whence._debug_files import DebugFiles, Found, Module, identify
from whence._frame import Frame
from whence._line_files import LineFiles, missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["MODES", "Module", "Symbolizer", "placeholder"]

MODES = ("full", "symbols", "off")
MOST_CACHED = 1 << 16  # answers
MOST_OPEN = 32  # modules whose files are kept open
_END = 1 << 64


class _Sources:
    """What is known about one module: the files that say it."""

    __slots__ = ("lines", "names")

    def __init__(self) -> None:
        self.lines: Found | None = None  # has debug info
        self.names: Found | None = None  # the best table of symbols that there is


class Symbolizer:
    """Names addresses. Not for two threads at once: see ``_native``.

    ``mode`` is what it does: "full" needs the package symbolic, and becomes "symbols"
    without it; then ``reason`` says so. ``problems`` says why files could not be used,
    each in one line, by path.
    """

    def __init__(
        self, mode: str = "symbols", debug_dirs: Iterable[str | os.PathLike[str]] = ()
    ) -> None:
        if mode not in MODES:
            text = f"mode must be 'full', 'symbols' or 'off', not {mode!r}"
            raise ValueError(text)
        self.reason = missing() if mode == "full" else None
        self.mode = mode if self.reason is None else "symbols"
        self.problems: dict[str, str] = {}
        directories = tuple(os.path.abspath(directory) for directory in debug_dirs)
        self._files = DebugFiles(directories, self.problems)
        self._lines = LineFiles(self.problems)
        # Both in the order of their last use or of their making: the first one goes.
        self._sources: dict[Any, _Sources] = {}
        self._answers: dict[Any, list[Frame]] = {}

    def name(self, requests: list[tuple[Module, int]]) -> list[list[Frame]]:
        """Name addresses, each the frames that it stands for, innermost first.

        Addresses are those of the file, of an instruction in the function: a return
        address less one. Each has at least one frame.
        """
        if self.mode == "off":
            return [[placeholder(*request)] for request in requests]
        wanted: dict[Module, set[int]] = {}
        for module, address in requests:
            wanted.setdefault(module, set()).add(address)
        named = {
            module: self._name_all(module, addresses)
            for module, addresses in wanted.items()
        }
        return [list(named[module][address]) for module, address in requests]

    def _name_all(self, module: Module, addresses: set[int]) -> dict[int, list[Frame]]:
        key = (module.path, module.build_id or identify(module.path))
        named = {}
        asked = []
        for address in sorted(addresses):
            if (known := self._answers.get((key, address))) is not None:
                named[address] = known
            elif 0 <= address < _END:
                asked.append(address)
            else:
                named[address] = [placeholder(module, address)]
        if asked:
            found = self._find(module, self._sources_of(key, module), asked)
            for address, frames in zip(asked, found, strict=True):
                named[address] = self._answers[key, address] = frames
            while len(self._answers) > MOST_CACHED:
                del self._answers[next(iter(self._answers))]
        return named

    def _sources_of(self, key: Any, module: Module) -> _Sources:
        sources = self._sources.pop(key, None)
        if sources is None:
            sources = self._look_for(module)
            while len(self._sources) >= MOST_OPEN:
                del self._sources[next(iter(self._sources))]
        self._sources[key] = sources
        return sources

    def _look_for(self, module: Module) -> _Sources:
        sources = _Sources()
        before = self.problems.get(module.path)
        for found in self._files.search(module):
            if sources.names is None or (
                found.file.has_symbols and not sources.names.file.has_symbols
            ):
                sources.names = found
            if sources.lines is None and found.file.has_debug_info:
                sources.lines = found
            if sources.names.file.has_symbols and (
                self.mode != "full" or sources.lines is not None
            ):
                break
        if sources.names is not None and before is None:
            # Another one was found in its place.
            self.problems.pop(module.path, None)
        return sources

    def _find(
        self, module: Module, sources: _Sources, addresses: list[int]
    ) -> list[list[Frame]]:
        functions = self._functions(sources, addresses)
        located: list[list[tuple[str, str, int]]] = [[] for _ in addresses]
        if self.mode == "full" and sources.lines is not None:
            located = self._lines.locate(sources.lines, addresses)
        return [
            _frames(module, address, places, function)
            for address, places, function in zip(
                addresses, located, functions, strict=True
            )
        ]

    def _functions(self, sources: _Sources, addresses: list[int]) -> list[str | None]:
        if sources.names is not None:
            path, file, _ = sources.names
            try:
                return [found and found[0] for found in file.find(addresses)]
            except OSError as error:
                self.problems[path] = f"cannot be read: {error.strerror}"
            except ValueError as error:
                self.problems[path] = str(error)
        return [None] * len(addresses)


def _frames(
    module: Module,
    address: int,
    places: list[tuple[str, str, int]],
    function: str | None,
) -> list[Frame]:
    """Make the frames of one address; the last place is that of the function itself."""
    nothing = placeholder(module, address)
    if not places:
        return [nothing._replace(name=function or nothing.name)]
    frames = [
        Frame(name, filename or module.path, line or None, kind="native")
        for name, filename, line in places
    ]
    if not frames[-1].name:
        frames[-1] = frames[-1]._replace(name=function or "")
    return [
        frame if frame.name else frame._replace(name=nothing.name) for frame in frames
    ]


def placeholder(module: Module, address: int) -> Frame:
    """Return the frame of an address that has no name."""
    name = os.path.basename(module.path) or "unknown"
    return Frame(f"<{name}+{address:#x}>", module.path, None, kind="native")
