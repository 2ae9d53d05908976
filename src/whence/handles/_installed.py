"""The tables that errors ask, and that recordings keep."""

from __future__ import annotations

import weakref

from whence import _core
from whence._core import HandleSnapshot
from whence._locks import ForkedLock
from whence.handles._table import HandleTable, parts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

    from whence.handles._parts import Part

_changing = ForkedLock()
_keeping = ForkedLock()  # a table goes into the recording as a whole
_tables: tuple[weakref.ref[HandleTable], ...] = ()  # replaced as a whole


class _Kept:
    """What of the tables is in the recording that is on: under ``_keeping``.

    Recorders only add to what they have, and a program may install a table after each
    compilation: so of a namespace that is issued here, the recording gets what is new.
    """

    rows: ClassVar[dict[str, int]] = {}  # how many, by namespace
    files: ClassVar[set[int]] = set()  # hashes of what other tables are as files
    has_refused: ClassVar[bool] = False  # there was no room for some


def install(table: HandleTable) -> HandleTable:
    """Make a table known to the process, until it dies or is taken back.

    Whoever keeps what was lowered keeps its table: they go together. A recording that
    is on keeps a copy, and so does one that is started. Returns the table.
    """
    if not isinstance(table, HandleTable):
        message = f"install() takes a HandleTable, not {type(table).__name__}"
        raise TypeError(message)
    global _tables
    with _changing:
        others = [known for known in installed() if known is not table]
        _tables = tuple(map(weakref.ref, (*others, table)))
    if _core.is_recording():
        _keep(table)
    return table


def uninstall(table: HandleTable) -> None:
    """Take a table back. ValueError if it is not installed."""
    global _tables
    with _changing:
        left = tuple(ref for ref in _tables if ref() is not table)
        if len(left) == len(_tables):
            message = f"{table!r} is not installed"
            raise ValueError(message)
        _tables = left


def installed() -> list[HandleTable]:
    """Return the tables that are known now."""
    return [table for ref in _tables if (table := ref()) is not None]


def keep_all() -> None:
    """Put all of them into the recording that has begun."""
    with _keeping:
        _Kept.rows.clear()
        _Kept.files.clear()
        _Kept.has_refused = False
    for table in installed():
        _keep(table)


def _keep(table: HandleTable) -> None:
    for part in parts_of(table):
        with _keeping:
            is_kept = (
                _keep_rows(part, part.rows)
                if isinstance(part.rows, HandleSnapshot)
                else _keep_file(part)
            )
            if not is_kept and _core.is_recording() and not _Kept.has_refused:
                _Kept.has_refused = True
                _core.tell("handles", "limit")


def _keep_rows(part: Part, rows: HandleSnapshot) -> bool:
    first, count = _Kept.rows.get(part.namespace, 0), len(rows)
    if first >= count:
        return True
    _, namespace, top = part.encodable()
    data = _core.encode_handles([(rows, namespace, top, first)])
    is_kept = _core.keep_handles(part.namespace, data)
    if is_kept:
        _Kept.rows[part.namespace] = count
    return is_kept


def _keep_file(part: Part) -> bool:
    data = _core.encode_handles([part.encodable()])
    if hash(data) in _Kept.files:
        return True
    is_kept = _core.keep_handles(part.namespace, data)
    if is_kept:
        _Kept.files.add(hash(data))
    return is_kept
