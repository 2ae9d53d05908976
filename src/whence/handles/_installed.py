"""The tables that errors ask, and that recordings keep."""

from __future__ import annotations

import weakref

from whence import _core
from whence._locks import ForkedLock
from whence.handles._table import HandleTable, parts_of

_changing = ForkedLock()
_keeping = ForkedLock()  # a table goes into the recording as a whole
_tables: tuple[weakref.ref[HandleTable], ...] = ()  # replaced as a whole


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
    for table in installed():
        _keep(table)


def _keep(table: HandleTable) -> None:
    for part in parts_of(table):
        data = _core.encode_handles([part.encodable()])
        with _keeping:
            _core.keep_handles(part.namespace, data)
