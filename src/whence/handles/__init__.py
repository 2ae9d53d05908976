"""Debug handles: integers that lead from lowered code back to its source.

A compiler asks a ``Recorder`` for a handle for each operation, and keeps the integers
in what it makes. ``Recorder.stop()`` gives a ``HandleTable``, which is saved beside
that; in this process or another, it says what a handle stands for::

    recorder = handles.Recorder()
    add = recorder.issue(handles.SourceRange("model.ex", 3, 8, 3, 13), "add")
    table = recorder.stop()
    print(table.explain(add))

A table is immutable; everything here may be used from any thread.
"""

from whence._core import InlinedCall, SourceRange
from whence._core import handle_event as event
from whence.handles._error import LoweredError
from whence.handles._installed import install, uninstall
from whence.handles._parts import UNKNOWN, HandleRecord, HandleTableError
from whence.handles._recorder import Recorder
from whence.handles._table import HandleTable

__all__ = [
    "UNKNOWN",
    "HandleRecord",
    "HandleTable",
    "HandleTableError",
    "InlinedCall",
    "LoweredError",
    "Recorder",
    "SourceRange",
    "event",
    "install",
    "uninstall",
]
