"""Exceptions that the program did not catch: what ``python`` does with them."""

from __future__ import annotations

import sys

from whence import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

_OWN = __name__.rpartition(".")[0]


def report(error: BaseException) -> None:
    """Print it by ``sys.excepthook``. To be called while no exception is handled.

    An exit that the hook asks for is passed on.
    """
    trace = _without_ours(error)
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    if not hasattr(sys, "excepthook"):
        _write("sys.excepthook is missing\n")
        _display(error)
        return
    hook = sys.excepthook
    raised = None
    try:
        sys.audit("sys.excepthook", hook, type(error), error, trace)
        _core.call_alone(hook, type(error), error, trace)
    except SystemExit:
        raise
    except BaseException as another:  # noqa: BLE001
        raised = another
    if raised is not None:
        _without_ours(raised)
        _write("Error in sys.excepthook:\n")
        _display(raised)
        _write("\nOriginal exception was:\n")
        _display(error)


def _without_ours(error: BaseException) -> TracebackType | None:
    """Take our frames off, which are the first ones."""
    trace = error.__traceback__
    while trace is not None and _is_ours(trace):
        trace = trace.tb_next
    error.__traceback__ = trace
    return trace


def _is_ours(trace: TracebackType) -> bool:
    return str(trace.tb_frame.f_globals.get("__name__")).startswith(_OWN)


def _display(error: BaseException) -> None:
    sys.__excepthook__(type(error), error, error.__traceback__)


def _write(text: str) -> None:
    try:  # noqa: SIM105
        sys.stderr.write(text)
    except Exception:  # noqa: BLE001, S110
        pass
