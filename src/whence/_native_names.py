"""The native frames of a recording, by name as far as somebody has looked them up."""

from __future__ import annotations

from whence._frame import Frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whence import _core

_UNKNOWN = "<unknown>"
# As the core calls them, by number.
_REMARKS = {
    1: Frame("<native frames missing>", "", None, kind="truncated"),
    2: Frame(
        "<Python frames inside, native frames outside>", "", None, kind="unmerged"
    ),
}


class NativeNames:
    """Names what is at an address of a module."""

    __slots__ = ("_modules", "_reader")

    def __init__(self, reader: _core.Reader) -> None:
        self._reader = reader
        self._modules: dict[int, str] | None = None  # paths, once one is needed

    def frames(self, code: int, address: int) -> tuple[Frame, ...]:
        """Return the frame, and those that it was inlined into, innermost first.

        ``code`` and ``address`` are what ``reader.stack()`` says of a native frame.
        """
        module = ~code
        if module == 0:
            return (_REMARKS.get(address, _REMARKS[1]),)
        path = self._path(module)
        known = self._reader.symbols(module, address)
        if not known:
            place = f"<{path.rpartition('/')[2]}+{address:#x}>"
            return (Frame(place, path, None, kind="native"),)
        return tuple(
            Frame(name or _UNKNOWN, file or path, line or None, kind="native")
            for name, file, line in known
        )

    def _path(self, module: int) -> str:
        if self._modules is None:
            self._modules = {
                number: path or _UNKNOWN for number, path, _ in self._reader.modules()
            }
        return self._modules.get(module, _UNKNOWN)
