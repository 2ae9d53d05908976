"""Errors of lowered code, which show the source that it came from."""

from __future__ import annotations

import re

from whence._locks import ForkedLock
from whence.handles import _explain, _installed
from whence.handles._parts import UNKNOWN, checked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from whence.handles._parts import Handle
    from whence.handles._table import HandleTable


_OWN = frozenset(("_handles", "_tables", "_notes", "_shown", "_told"))
_NAMESPACE = re.compile(r"[0-9a-f]{32}").fullmatch
# For notes of all errors, and never for long: sources are read before. Whatever a
# garbage collection runs meanwhile may show another error.
_changing = ForkedLock(reentrant=True)


_LARGEST = 2**63 - 1


def _issued(handle: Handle) -> Handle:
    """Return what may be a handle of somebody's, or the unknown one."""
    known = checked(handle)
    namespace, number = (None, known) if isinstance(known, int) else known
    if not UNKNOWN <= number < _LARGEST:
        message = f"{number:#x} is no handle: they go from {UNKNOWN} to 2**63 - 2"
        raise ValueError(message)
    if namespace is not None and not _NAMESPACE(namespace):
        message = "a namespace is a str of 32 hexadecimal digits"
        raise ValueError(message)
    return known


class LoweredError(RuntimeError):
    """An error in lowered code.

    It carries handles, innermost first, and shows what the tables that are installed
    say of them: as a note, so wherever Python shows the error. The tables are those
    that are there when a handle is added, and when the error is shown.
    """

    __module__ = "whence.handles"

    def __init__(self, message: str, handle: Handle) -> None:
        super().__init__(message)
        self._handles: tuple[Handle, ...] = (_issued(handle),)
        self._tables: list[HandleTable] = _installed.installed()
        # One list for good, as tools expect: they keep it and add to it. The source is
        # in it from when it is first asked for, and brought up to date in its place.
        self._notes: list[str] = []
        self._shown: str | None = None  # the source as it is in there
        self._told: tuple[int, str] = (0, "")  # so many handles, by the original

    @property
    def handles(self) -> tuple[Handle, ...]:
        """The handles so far, innermost first."""
        return self._handles

    def push(self, handle: Handle) -> Self:
        """Add a handle further out; returns the error, to be raised again."""
        self._handles += (_issued(handle),)
        self._tables = self._known()
        return self

    def add_note(self, note: str, /) -> None:
        """Add a note, which stands behind the source."""
        if not isinstance(note, str):
            message = f"note must be a str, not {type(note).__name__}"
            raise TypeError(message)
        self._notes.append(note)

    @property
    def __notes__(self) -> list[str]:
        """The source, and the notes that were added, also to this list itself."""
        return self._with_source()[0]

    @__notes__.setter
    def __notes__(self, notes: list[str]) -> None:
        self._notes = notes if type(notes) is list else list(notes)

    @__notes__.deleter
    def __notes__(self) -> None:
        self._notes = []

    def _with_source(self) -> tuple[list[str], str]:
        """Return the notes and which of them is the source, as it is now."""
        source = self._source()
        with _changing:
            notes = self._notes
            for place, note in enumerate(notes):
                if isinstance(note, str) and note in (self._shown, source):
                    # A slice, as another thread may have made the list shorter.
                    notes[place : place + 1] = [source]
                    break
            else:
                notes.insert(0, source)
            self._shown = source
        return notes, source

    def _known(self) -> list[HandleTable]:
        """Return tables from before, which are kept, and those of now."""
        new = [
            table
            for table in _installed.installed()
            if not any(table is known for known in self._tables)
        ]
        return self._tables + new

    def _source(self) -> str:
        count, told = self._told
        later = self._handles[count:]
        if not later:
            return told
        parts = [part for table in self._known() for part in table._parts]  # noqa: SLF001
        text = _explain.text(parts, later, None).rstrip("\n")
        return f"{text}\n{told}" if told else text

    def __reduce__(self) -> tuple[object, ...]:
        """Tables stay where they are: a copy has what they say now."""
        notes, source = self._with_source()
        fields = (type(self), self.args, self._handles, source, list(notes))
        others = {k: v for k, v in vars(self).items() if k not in _OWN}
        return _restore, fields, others


def _restore(
    kind: type[LoweredError],
    args: tuple[object, ...],
    handles: tuple[Handle, ...],
    text: str,
    notes: list[str],
) -> LoweredError:
    """Make an error of another process. Pickles call this by name."""
    error = kind.__new__(kind, *args)
    LoweredError.__init__(error, "", handles[0])
    error.args = args
    error._handles, error._told = handles, (len(handles), text)  # noqa: SLF001
    error._notes, error._shown = list(notes), text  # noqa: SLF001
    return error
